#include "deadline.h"

void sr_deadlines_init(sr_engine *e)
{
    const sr_config *config = &e->config;
    for (int i = 0; i < SR_DEADLINE_KINDS; i++)
        sr_link_init(&e->deadlines[i]);
    e->limit[SR_DEADLINE_HEAD] = config->header_ns;
    e->limit[SR_DEADLINE_BODY] = config->body_ns;
    e->limit[SR_DEADLINE_IDLE] = config->idle_ns;
    e->limit[SR_DEADLINE_WRITE] = config->write_ns;
    e->limit[SR_DEADLINE_QUEUE] = config->queue_ns ? config->queue_ns : SR_NO_LIMIT;
    e->limit[SR_DEADLINE_LINGER] = config->linger_ns;
    e->limit[SR_DEADLINE_HANDSHAKE] = config->handshake_ns;
    e->waited_too_long = 503;
    if (config->request_ns && config->request_ns < e->limit[SR_DEADLINE_QUEUE]) {
        e->limit[SR_DEADLINE_QUEUE] = config->request_ns;
        e->waited_too_long = 504;
    }
}

static void count_idle(sr_engine *e, sr_deadline_kind kind, int64_t by)
{
    if (kind == SR_DEADLINE_IDLE)
        e->n_idle += (uint64_t)by;
}

void sr_deadline_clear(sr_engine *e, sr_conn *c)
{
    if (sr_link_alone(&c->timer))
        return;
    count_idle(e, (sr_deadline_kind)c->timer_kind, -1);
    sr_link_remove(&c->timer);
}

static void enter(sr_engine *e, sr_conn *c, sr_deadline_kind kind, int64_t deadline)
{
    sr_deadline_clear(e, c);
    c->deadline = deadline;
    c->timer_kind = (uint8_t)kind;
    count_idle(e, kind, 1);
}

void sr_deadline_set(sr_engine *e, sr_conn *c, sr_deadline_kind kind)
{
    enter(e, c, kind, e->now + e->limit[kind]);
    sr_link_append(&e->deadlines[kind], &c->timer);
    e->running |= 1U << kind;
}

void sr_deadline_keep(sr_engine *e, sr_conn *c, sr_deadline_kind kind, int64_t deadline)
{
    int64_t last = e->now + e->limit[kind];
    enter(e, c, kind, deadline < last ? deadline : last);
    sr_link *at = e->deadlines[kind].prev; /* from the end: a new deadline is seldom among the first */
    while (at != &e->deadlines[kind] && SR_LIST_ENTRY(at, sr_conn, timer)->deadline > c->deadline)
        at = at->prev;
    sr_link_append(at->next, &c->timer);
    e->running |= 1U << kind;
}

void sr_deadline_shorten(sr_engine *e, sr_deadline_kind kind, int64_t limit)
{
    int64_t less = e->limit[kind] - limit;
    if (less <= 0)
        return;
    e->limit[kind] = limit;
    for (sr_link *l = e->deadlines[kind].next; l != &e->deadlines[kind]; l = l->next)
        SR_LIST_ENTRY(l, sr_conn, timer)->deadline -= less;
}

int64_t sr_deadline_first(const sr_engine *e, sr_deadline_kind kind)
{
    const sr_link *head = &e->deadlines[kind];
    return sr_link_alone(head) ? 0 : SR_LIST_ENTRY(head->next, sr_conn, timer)->deadline;
}

int sr_deadlines_timeout(sr_engine *e)
{
    uint32_t kinds = e->running;
    int64_t first = e->listeners_again ? e->listeners_again : INT64_MAX;
    for (int kind; (kind = sr_deadline_kind_next(e, &kinds)) >= 0;) {
        int64_t deadline = SR_LIST_ENTRY(e->deadlines[kind].next, sr_conn, timer)->deadline;
        if (deadline < first)
            first = deadline;
    }
    if (first == INT64_MAX)
        return -1;
    if (first <= e->now)
        return 0;
    int64_t ms = (first - e->now + SR_MILLISECOND - 1) / SR_MILLISECOND;
    return ms < 60000 ? (int)ms : 60000;
}
