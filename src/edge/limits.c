#include "limits.h"

#include "../conn/deadline.h"
#include "../conn/protocol.h"
#include "../websocket/wsanswer.h"
#include "deliver.h"
#include "entry.h"
#include "holder.h"
#include "lanes.h"
#include "log.h"
#include "presence.h"
#include "report.h"

#include <poll.h>

/*
 * A client that has shut down its side, and whose request is still waiting after this time, has most probably
 * left: over TCP a close looks the same. Its request is not run; 503 tells those who still read. With
 * --half-closed serve it is run.
 */
#define GAVE_UP_NS (10 * SR_MILLISECOND)
#define AGAIN_NS SR_SECOND /* before the next try to report, when the supervisor does not read */

static bool waits(const sr_edge *ed, const sr_exchange *x)
{
    uint32_t slot = x->slot - 1;
    return sr_holder(ed, slot) < 0;
}

/*
 * Whether a client that has ended its side has closed the connection as well: the kernel knows that of unix
 * sockets alone.
 */
static bool closed(const sr_conn *c)
{
    struct pollfd p = {.fd = c->source.fd};
    return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

/* Takes a request that no worker has begun out of the queue. False: one has. */
static bool take_back(sr_edge *ed, sr_exchange *x)
{
    uint32_t slot = x->slot - 1;
    if (!ed->entries[slot].waits_for &&
        (sr_entry_runs(ed, slot) >= 0 || !sr_queue_drop(&ed->queue, slot, ed->entries[slot].number)))
        return false;
    sr_log_offer(ed, slot); /* who refuses it has no bytes of this request, but maybe of the next one */
    sr_entry_forget(ed, slot);
    return true;
}

/* Whether a client that has ended its side, and whose request waits, is taken for one that has left. */
static bool gave_up(const sr_edge *ed, const sr_exchange *x)
{
    const sr_engine *e = ed->engine;
    return !e->config.serves_half_closed && !e->listeners.at[x->conn->listener].is_unix &&
           e->now - x->ready_at >= GAVE_UP_NS;
}

/*
 * Ends a request whose client is gone, or is taken for that. True: it did. Of one that has others the
 * protocol hears by itself.
 */
static bool dropped(sr_edge *ed, sr_exchange *x)
{
    sr_engine *e = ed->engine;
    sr_conn *c = x->conn;
    if (c->state == SR_CONN_STREAMS)
        return false;
    int state = sr_presence(c);
    bool ended = state > 0 && waits(ed, x);
    if (state < 0 || (ended && closed(c))) {
        sr_conn_close(e, c, SR_CLOSED_CLIENT);
        return true;
    }
    if (!ended || !gave_up(ed, x) || !take_back(ed, x))
        return false;
    sr_exchange_refuse(e, x, 503, SR_REFUSED_HALF_CLOSED);
    return true;
}

void sr_limits_peer_event(sr_edge *ed, sr_exchange *x, uint32_t events)
{
    sr_engine *e = ed->engine;
    sr_conn *c = x->conn;
    if (events & EPOLLOUT && c->out) {
        sr_deliver_writable(ed, x);
        return;
    }
    if (dropped(ed, x))
        return;
    if (c->out)
        sr_conn_watch(e, c, EPOLLOUT);
    else if (waits(ed, x) && !(events & (EPOLLHUP | EPOLLERR)))
        sr_conn_watch(
            e, c,
            0); /* only its loss: bytes of a next request, or its end, would be reported over and over */
    else
        sr_conn_unwatch(e, c);
}

/* --- calls that take too long --- */

/* Says LATE about a request, or takes it back. Without a supervisor nobody kills the worker. */
static void say_late(sr_edge *ed, uint32_t slot, bool late)
{
    const sr_entry *en = &ed->entries[slot];
    late = late && ed->report >= 0;
    sr_queue_gone(&ed->queue, slot, en->number,
                  (en->exchange ? 0 : SR_GONE_CLIENT) | (late ? SR_GONE_LATE : 0));
}

/*
 * Tells the worker to take no other request, since it will be killed, and then reads its replies once more:
 * either the worker sees this when it is done, or these replies show that it is done. Returns its row. -1: it
 * is done after all. The caller decides by what has come, and calls say_late if it does not have the worker
 * killed. Until then the worker sends all of its reply.
 */
static int32_t too_late(sr_edge *ed, uint32_t slot)
{
    uint64_t number = ed->entries[slot].number;
    int32_t row = sr_holder(ed, slot);
    if (row < 0 || ed->workers[row].line.fd < 0)
        return -1;
    say_late(ed, slot, true);
    atomic_thread_fence(memory_order_seq_cst); /* the worker writes END and then looks */
    sr_deliver(ed, &ed->workers[row]);
    return ed->entries[slot].number == number ? row : -1;
}

/* Counts the request once, also when the supervisor could not be told. */
static void count(const sr_edge *ed, sr_entry *en, sr_limit limit)
{
    if (!en->overdue)
        sr_counters_add(&ed->engine->row->counters.limited[limit], 1);
    en->overdue = true;
}

static void call_over(sr_edge *ed, sr_exchange *x)
{
    sr_engine *e = ed->engine;
    uint32_t slot = x->slot - 1;
    sr_entry *en = &ed->entries[slot];
    int32_t row = too_late(ed, slot);
    if (row < 0)
        return;                                            /* the answer has come just now */
    if (en->exchange != x || en->phase != SR_ENTRY_OPEN) { /* it has begun, or could not be sent */
        say_late(ed, slot, false);
        return;
    }
    bool lost = sr_presence_lost(x->conn);
    bool gone = x->conn->state != SR_CONN_STREAMS && (lost || sr_presence(x->conn) < 0 || x->interim_pending);
    count(ed, en, SR_LIMIT_REQUEST);
    en->late =
        sr_report_late(ed, slot, ed->workers[row].pid, "ran", e->now - sr_entry_since(ed, slot),
                       lost || gone ? "the client was gone" : sr_wsanswer_outcome(x, "the client got 504"));
    if (gone)
        sr_conn_close(e, x->conn, SR_CLOSED_CLIENT);
    else
        sr_exchange_refuse(e, x, 504, SR_REFUSED_REQUEST_TIMEOUT);
}

static void stream_over(sr_edge *ed, sr_exchange *x)
{
    sr_engine *e = ed->engine;
    uint32_t slot = x->slot - 1;
    sr_entry *en = &ed->entries[slot];
    int64_t active_at = x->active_at;
    int32_t row = too_late(ed, slot);
    if (row < 0)
        return;
    if (en->exchange != x || x->active_at != active_at) { /* more has come just now */
        say_late(ed, slot, false);
        return;
    }
    bool whole = sr_exchange_whole(x); /* the client has all of it, but the worker has not come to its end */
    count(ed, en, SR_LIMIT_STREAM);
    en->late = sr_report_late(
        ed, slot, ed->workers[row].pid, "paused within its response", e->now - active_at,
        whole ? "the response was complete" : sr_wsanswer_outcome(x, "the response was cut off"));
    sr_entry_abandon(ed, x);
    if (whole) {
        x->protocol->end(e, x);
        return;
    }
    x->conn->why = SR_CLOSED_ERROR;
    x->protocol->cut(e, x);
}

/* A worker runs the request. --request-timeout counts from when the request was complete. */
static void call_watch(sr_edge *ed, sr_exchange *x)
{
    sr_engine *e = ed->engine;
    if (e->config.request_ns)
        sr_deadline_keep_exchange(e, x, SR_DEADLINE_CALL,
                                  sr_entry_since(ed, x->slot - 1) + e->config.request_ns);
}

/* The request has waited so long that its client may be gone. */
static void look(sr_edge *ed, sr_exchange *x)
{
    sr_engine *e = ed->engine;
    sr_conn *c = x->conn;
    if (dropped(ed, x))
        return;
    if (!waits(ed, x)) {
        call_watch(ed, x);
        return;
    }
    /* from now on, the loss of the client is an event; a byte that is held would be one over and over */
    if (c->state != SR_CONN_STREAMS)
        sr_conn_watch(e, c, c->held ? EPOLLRDHUP : EPOLLIN | EPOLLRDHUP);
    if (x->slot && !sr_lanes_holds(&ed->entries[x->slot - 1])) /* a lane has a time limit of its own */
        sr_deadline_keep_exchange(e, x, SR_DEADLINE_QUEUE,
                                  sr_entry_since(ed, x->slot - 1) + e->deadlines.limit[SR_DEADLINE_QUEUE]);
}

/* False: no worker has taken the request, and the caller refuses it. */
static bool queue_over(sr_edge *ed, sr_exchange *x)
{
    if (dropped(ed, x))
        return true;
    if (take_back(ed, x))
        return false;
    if (waits(ed, x)) /* its claim is spoiled; mend.c will repair it */
        sr_deadline_set_exchange(ed->engine, x, SR_DEADLINE_LOOK);
    else
        call_watch(ed, x);
    return true;
}

bool sr_limits_expired(sr_edge *ed, sr_exchange *x, sr_deadline_kind kind)
{
    if (x->lent) /* psgix.io: the application talks to the client directly */
        return true;
    switch (kind) {
    case SR_DEADLINE_LOOK:
        look(ed, x);
        return true;
    case SR_DEADLINE_QUEUE:
        return queue_over(ed, x);
    case SR_DEADLINE_CALL:
        if (waits(ed, x)) /* its worker died before it began */
            return queue_over(ed, x);
        call_over(ed, x);
        return true;
    case SR_DEADLINE_STREAM:
        stream_over(ed, x);
        return true;
    default:
        return true;
    }
}

/*
 * Since when the application runs it, as its worker says: its exchange knew that. If it does not, since it
 * was complete.
 */
static int64_t runs_since(const sr_edge *ed, uint32_t slot, int32_t row)
{
    const sr_ring *ring = ed->workers[row].reader.ring;
    int64_t ready = atomic_load_explicit(&sr_queue_at(&ed->queue, slot)->ready_at, memory_order_relaxed);
    int64_t at = atomic_load(&ring->began) == ed->entries[slot].number
                     ? atomic_load_explicit(&ring->began_at, memory_order_relaxed)
                     : ready;
    return at < ready || at > ed->engine->now ? ready : at;
}

void sr_limits_expire_abandoned(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    while (!sr_link_alone(&ed->abandoned)) {
        sr_entry *en = SR_LIST_ENTRY(ed->abandoned.next, sr_entry, link);
        uint32_t slot = (uint32_t)(en - ed->entries);
        if (en->due_at > e->now)
            return;
        sr_link_remove(&en->link);
        int32_t row = too_late(ed, slot);
        if (row < 0)
            continue;
        count(ed, en, (sr_limit)en->limit);
        en->late = sr_report_late(ed, slot, ed->workers[row].pid, "ran", e->now - runs_since(ed, slot, row),
                                  "the client was gone");
        if (!en->late) {
            say_late(ed, slot, false);
            sr_entry_watch(ed, en, e->now + AGAIN_NS);
        }
    }
}

int64_t sr_limits_abandoned_at(const sr_edge *ed)
{
    return sr_link_alone(&ed->abandoned) ? INT64_MAX
                                         : SR_LIST_ENTRY(ed->abandoned.next, sr_entry, link)->due_at;
}
