/*
 * drain: how a worker ends without a client noticing: what can move is given to its colleagues, what can't is
 * finished. Only when the whole server ends are idle connections closed.
 */
#include "parts.h"

enum { RETRY_MS = 2 };

/*
 * The whole server ends, or nobody is left to give to. A client that was active within the last second may be
 * about to send: it is told "Connection: close" with one more response instead of finding its connection
 * closed.
 */
static void let_go(sr_engine *e)
{
    bool free_to_serve = !(atomic_load_explicit(&e->turn, memory_order_relaxed) & 1);
    while (free_to_serve && sr_handover_take(e)) /* what was given while there was somebody to take it */
        ;
    sr_deadline_shorten(e, SR_DEADLINE_IDLE, SR_SECOND);
    sr_deadline_shorten(e, SR_DEADLINE_HEAD, SR_SECOND);
    sr_deadlines_expire(e);
}

bool sr_drain_step(sr_engine *e)
{
    sr_engine_queues(e, false);
    sr_deadline_shorten(e, SR_DEADLINE_LINGER, SR_SECOND);
    e->retry_at = 0;
    if (!sr_engine_gives(e)) {
        let_go(e);
    } else {
        bool turns = sr_handover_give_turns(e); /* one that can't move must not keep the others here */
        bool idle = sr_handover_give_idle(e, INT32_MAX);
        bool heads = sr_handover_give_heads(e);
        if (!turns || !idle || !heads)
            e->retry_at = e->now + RETRY_MS * SR_MILLISECOND;
    }
    return e->n_conns == 0;
}

void sr_engine_evacuate(sr_engine *e, int64_t ns)
{
    sr_task task;
    bool wake;
    e->retiring = true;
    sr_engine_tick(e);
    for (int64_t end = e->now + ns; e->now < end && !sr_drain_step(e); sr_engine_tick(e)) {
        e->n_events = sr_loop_wait(&e->loop, e->events, RETRY_MS);
        for (e->event = 0; e->event < e->n_events;) {
            sr_source *s = e->events[e->event++].data.ptr;
            if (s && sr_engine_event(e, s, &task, &wake) == SR_INTAKE_READY)
                sr_intake_park(e, &task);
        }
        sr_deadlines_expire(e);
    }
    sr_accesslog_flush(e);
}
