#include "stop.h"

#include "../conn/lifetime.h"
#include "../conn/listener.h"
#include "../conn/protocol.h"
#include "../live/live.h"
#include "../websocket/websocket.h"
#include "deliver.h"
#include "holder.h"

#include <unistd.h>

/*
 * The generation kills a worker that does not finish in time. The edge waits a little longer, so that the
 * client gets 502 and not a closed connection.
 */
#define AFTER_WORKERS_NS (500 * SR_MILLISECOND)
#define FAST_NS (SR_SECOND + AFTER_WORKERS_NS)
#define HURRIED_NS (200 * SR_MILLISECOND)

static void end_in(sr_edge *ed, int64_t ns)
{
    int64_t at = ed->engine->now + ns;
    if (!ed->stop.end_at || at < ed->stop.end_at)
        ed->stop.end_at = at;
}

void sr_stop_begin(sr_edge *ed, bool fast)
{
    sr_engine *e = ed->engine;
    bool again = ed->stop.begun;
    sr_engine_tick(e);
    ed->stop.begun = true;
    if (fast || again) {
        end_in(ed, ed->stop.fast ? HURRIED_NS : FAST_NS);
        ed->stop.fast = true;
    } else {
        end_in(ed, ed->stop.graceful_ns + AFTER_WORKERS_NS);
    }
    e->draining = true;
    if (ed->live)
        sr_live_drain(ed->live);
    sr_engine_drain_streams(e);
}

void sr_stop_owner_ended(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    sr_loop_remove(&e->loop, &ed->owner_end);
    sr_stop_begin(ed, true);
    sr_listeners_watch(e, false);
    for (unsigned i = 0; i < e->listeners.n; i++) {
        close(e->listeners.at[i].source.fd);
        e->listeners.at[i].over = true;
        e->listeners.at[i].source.fd = -1;
    }
}

/* Whether a worker has one of its requests, or the end of a response is being sent. */
static bool under_way(const sr_edge *ed, const sr_conn *c)
{
    for (const sr_exchange *x = c->exchange; x; x = x->older)
        if (x->slot ? sr_holder(ed, x->slot - 1) >= 0 : c->state == SR_CONN_STREAMS && x->status)
            return true;
    return c->state == SR_CONN_FLUSH || c->state == SR_CONN_LINGER ||
           (c->state == SR_CONN_STREAMS && (c->out || !sr_link_alone(&c->due)));
}

/* Requests that wait get 503. False: there is none. */
static bool refuse(sr_edge *ed, sr_conn *c)
{
    bool any = false;
    for (sr_exchange *x = c->exchange, *older; x; x = older) {
        older = x->older;
        bool begun = c->out && c->state != SR_CONN_STREAMS; /* otherwise that is of others, or frames */
        if (!x->slot || begun || !sr_deliver_unanswered(ed, &ed->entries[x->slot - 1]))
            continue;
        sr_exchange_refuse(ed->engine, x, 503, SR_REFUSED_STOP);
        any = true;
    }
    return any;
}

static void close_others(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    for (sr_link *l = e->all.next, *next; l != &e->all; l = next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        next = l->next;
        if (!under_way(ed, c) && !refuse(ed, c))
            sr_conn_close(e, c, SR_CLOSED_STOP);
    }
}

/*
 * Closes connections whose response is cut off already: waiting for a client that does not read gains
 * nothing.
 */
static void close_broken(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    for (sr_link *l = e->all.next, *next; l != &e->all; l = next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        const sr_exchange *x = c->exchange;
        next = l->next;
        if (x && !x->slot && x->broken && x->owed && c->state != SR_CONN_STREAMS)
            sr_conn_close(e, c, SR_CLOSED_STOP);
    }
}

bool sr_stop_done(const sr_edge *ed)
{
    bool tells = ed->websockets && !ed->stop.fast && !sr_link_alone(&ed->websockets->list);
    return sr_engine_over(ed->engine) && !tells;
}

bool sr_stop_step(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    close_broken(ed);
    if (ed->stop.fast)
        close_others(ed);
    bool drained = sr_engine_drain_step(e);
    return (drained && (!sr_engine_over(e) || sr_stop_done(ed))) || e->now >= ed->stop.end_at;
}

void sr_stop_end(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    for (sr_link *l = e->all.next, *next; l != &e->all; l = next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        next = l->next;
        refuse(ed, c);
    }
    sr_due_send(e);
    bool last = !sr_sleepers_part(ed->sleepers, ed->number);
    if (last && ed->stop.begun) /* otherwise another edge needs the workers, now or later */
        sr_sleepers_end_all(ed->sleepers);
}
