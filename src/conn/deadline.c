#include "deadline.h"

#include "engine.h"

void sr_deadlines_init(sr_deadlines *d, const sr_config *config)
{
    for (int i = 0; i < SR_DEADLINE_KINDS; i++)
        sr_link_init(&d->list[i]);
    d->limit[SR_DEADLINE_HEAD] = config->header_ns;
    d->limit[SR_DEADLINE_BODY] = config->body_ns;
    d->limit[SR_DEADLINE_IDLE] = config->idle_ns ? config->idle_ns : SR_SECOND; /* 0: see sr_session_spent */
    d->limit[SR_DEADLINE_WRITE] = d->limit[SR_DEADLINE_STALL] = config->write_ns;
    d->limit[SR_DEADLINE_QUEUE] = config->queue_ns ? config->queue_ns : SR_NO_LIMIT;
    d->limit[SR_DEADLINE_GOAWAY] = SR_NO_LIMIT;
    d->limit[SR_DEADLINE_LINGER] = config->linger_ns;
    d->limit[SR_DEADLINE_HANDSHAKE] = config->handshake_ns;
    d->due_at = INT64_MAX;
    d->waited_too_long = 503;
    if (config->request_ns && config->request_ns < d->limit[SR_DEADLINE_QUEUE]) {
        d->limit[SR_DEADLINE_QUEUE] = config->request_ns;
        d->waited_too_long = 504;
    }
}

void sr_deadline_clear(sr_engine *e, sr_conn *c)
{
    if (!sr_link_alone(&c->deadline.link)) {
        e->deadlines.n_idle -= c->deadline.kind == SR_DEADLINE_IDLE;
        sr_link_remove(&c->deadline.link);
    } else if (c->exchange && c->state != SR_CONN_STREAMS) {
        sr_link_remove(&c->exchange->deadline.link);
    }
}

void sr_deadline_clear_exchange(sr_engine *e, sr_exchange *x)
{
    if (x->conn->state == SR_CONN_STREAMS)
        sr_link_remove(&x->deadline.link);
    else
        sr_deadline_clear(e, x->conn);
}

bool sr_deadline_none(const sr_conn *c)
{
    return sr_link_alone(&c->deadline.link) && (!c->exchange || sr_link_alone(&c->exchange->deadline.link));
}

static void start(sr_engine *e, sr_deadline *d, sr_deadline_kind kind, int64_t at)
{
    d->at = at;
    d->kind = (uint8_t)kind;
    if (kind != SR_DEADLINE_LOOK && at < e->deadlines.due_at)
        e->deadlines.due_at = at;
    e->deadlines.n_idle += kind == SR_DEADLINE_IDLE;
    e->deadlines.running |= 1U << kind;
}

static void set(sr_engine *e, sr_deadline *d, sr_deadline_kind kind)
{
    start(e, d, kind, e->now + e->deadlines.limit[kind]);
    sr_link_append(&e->deadlines.list[kind], &d->link);
}

static void keep(sr_engine *e, sr_deadline *d, sr_deadline_kind kind, int64_t at)
{
    int64_t last = e->now + e->deadlines.limit[kind];
    start(e, d, kind, at < last ? at : last);
    sr_link *list = &e->deadlines.list[kind], *l = list->prev;
    while (l != list && SR_LIST_ENTRY(l, sr_deadline, link)->at > d->at)
        l = l->prev; /* from the end: a new deadline is seldom among the first */
    sr_link_append(l->next, &d->link);
}

void sr_deadline_set(sr_engine *e, sr_conn *c, sr_deadline_kind kind)
{
    sr_deadline_clear(e, c);
    set(e, &c->deadline, kind);
}

void sr_deadline_set_exchange(sr_engine *e, sr_exchange *x, sr_deadline_kind kind)
{
    sr_deadline_clear_exchange(e, x);
    set(e, &x->deadline, kind);
}

void sr_deadline_keep(sr_engine *e, sr_conn *c, sr_deadline_kind kind, int64_t at)
{
    sr_deadline_clear(e, c);
    keep(e, &c->deadline, kind, at);
}

void sr_deadline_keep_exchange(sr_engine *e, sr_exchange *x, sr_deadline_kind kind, int64_t at)
{
    sr_deadline_clear_exchange(e, x);
    keep(e, &x->deadline, kind, at);
}

void sr_deadline_shorten(sr_deadlines *d, sr_deadline_kind kind, int64_t limit)
{
    int64_t less = d->limit[kind] - limit;
    if (less <= 0)
        return;
    d->limit[kind] = limit;
    d->due_at = 0;
    for (sr_link *l = d->list[kind].next; l != &d->list[kind]; l = l->next)
        SR_LIST_ENTRY(l, sr_deadline, link)->at -= less;
}

int64_t sr_deadline_first(const sr_deadlines *d, sr_deadline_kind kind)
{
    return sr_link_alone(&d->list[kind]) ? 0 : sr_deadline_next(d, kind);
}

sr_exchange *sr_deadline_exchange(sr_link *l)
{
    return SR_LIST_ENTRY(l, sr_exchange, deadline.link);
}

sr_conn *sr_deadline_conn(sr_link *l, sr_deadline_kind kind)
{
    return sr_deadline_of_connection(kind) ? SR_LIST_ENTRY(l, sr_conn, deadline.link)
                                           : sr_deadline_exchange(l)->conn;
}

sr_conn *sr_deadline_head(const sr_deadlines *d, sr_deadline_kind kind)
{
    return sr_deadline_conn(d->list[kind].next, kind);
}

static int64_t find_due(sr_deadlines *d)
{
    uint32_t kinds = d->running & ~(1U << SR_DEADLINE_LOOK);
    int64_t first = INT64_MAX;
    for (int kind; (kind = sr_deadline_kind_next(d, &kinds)) >= 0;) {
        int64_t at = sr_deadline_next(d, kind);
        if (at < first)
            first = at;
    }
    return first;
}

int sr_deadlines_timeout(sr_engine *e)
{
    sr_deadlines *d = &e->deadlines;
    if (d->due_at <= e->now)
        d->due_at = find_due(d);
    int64_t first = d->due_at, look = sr_deadline_first(d, SR_DEADLINE_LOOK);
    if (look && look < first)
        first = look;
    if (e->listeners.again && e->listeners.again < first)
        first = e->listeners.again;
    if (first == INT64_MAX)
        return -1;
    if (first <= e->now)
        return 0;
    int64_t ms = (first - e->now + SR_MILLISECOND - 1) / SR_MILLISECOND;
    return ms < 60000 ? (int)ms : 60000;
}
