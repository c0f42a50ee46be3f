/*
 * surplus: a worker that has more ready connections than it can serve soon gives some to a colleague that
 * waits.
 *
 * A move costs both sides about 5 us of CPU and the wake-up of an idle core 20 to 40 us, so it must pay:
 *  - the last of the ready ones would wait longer than WORTH_NS at this worker's recent time per request; or
 *  - this worker has been at work for a good part of a window, and the colleague has done nothing for IDLE_NS.
 * That spreads connections of a fast application, and stops by itself: what moved stays there, and soon
 * nobody is idle for long.
 */
#include "parts.h"

#define WORTH_NS (300 * INT64_C(1000))
#define WINDOW_NS (10 * SR_MILLISECOND)
#define IDLE_NS (2 * SR_MILLISECOND)

enum {
    BUSY_PART = 5
}; /* a fifth of a window: what moves once is cheap against what it waits for in seconds to come */
#define LOOK_EVERY_NS (100 * INT64_C(1000))

static int connections_at_hand(const sr_engine *e)
{
    int n = 0;
    for (int i = e->event; i < e->n_events; i++) {
        const sr_source *s = e->events[i].data.ptr;
        n += s && s->kind == SR_SOURCE_CONN;
    }
    for (const sr_link *l = e->turns.next; l != &e->turns && n < 2 * SR_LOOP_EVENTS; l = l->next)
        n++;
    return n;
}

int sr_surplus_colleagues(const sr_engine *e, int64_t since)
{
    int n = 0;
    for (uint32_t i = 0; e->scoreboard && i < e->scoreboard->slots; i++) {
        sr_row *row = &e->scoreboard->rows[i];
        if (row != e->row && atomic_load_explicit(&row->state, memory_order_relaxed) == SR_WORKER_IDLE &&
            !atomic_load_explicit(&row->stopped, memory_order_relaxed) &&
            atomic_load_explicit(&row->since, memory_order_relaxed) <= since)
            n++;
    }
    return n;
}

/* The last of the batch first: it would wait longest. */
static int give_events(sr_engine *e, int most)
{
    int given = 0;
    for (int i = e->n_events - 1; i >= e->event && given < most; i--) {
        sr_source *s = e->events[i].data.ptr;
        if (!s || s->kind != SR_SOURCE_CONN)
            continue;
        sr_conn *c = (sr_conn *)s;
        if (c->state != SR_CONN_IDLE && c->state != SR_CONN_HEAD)
            continue;
        if (sr_handover_give(e, c) != SR_GIVEN)
            break;
        given++;
    }
    return given;
}

/* Called after each wait for events. Between two windows the judgement of the last one holds. */
void sr_surplus_window(sr_engine *e, int64_t idle)
{
    e->window_idle += idle;
    int64_t window = e->now - e->window_at;
    if (window < WINDOW_NS)
        return;
    e->busy = e->window_idle < window - window / BUSY_PART;
    e->window_at = e->now;
    e->window_idle = 0;
}

void sr_surplus_share(sr_engine *e)
{
    if (e->n_events - e->event < 2 && sr_link_alone(&e->turns))
        return;
    if (!e->scoreboard || e->scoreboard->slots < 2 || e->exchange.give < 0 ||
        e->now - e->looked_at < LOOK_EVERY_NS)
        return;
    e->looked_at = e->now;
    int more = connections_at_hand(e) - 1; /* one is served here, now */
    if (more < 1)
        return;
    bool worth = more * e->service_ns > WORTH_NS;
    int colleagues = worth     ? sr_surplus_colleagues(e, e->now)
                     : e->busy ? sr_surplus_colleagues(e, e->now - IDLE_NS)
                               : 0;
    if (!colleagues)
        return;
    int give = (more + 1) * colleagues / (colleagues + 1);
    give -= give_events(e, give);
    while (give-- > 0 && !sr_link_alone(&e->turns))
        if (sr_handover_give(e, SR_LIST_ENTRY(e->turns.prev, sr_conn, turn)) != SR_GIVEN)
            break;
}
