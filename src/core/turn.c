/*
 * turn: what happens around a request that is with the application: the helm is let go and taken back.
 */
#include "parts.h"

/* The companion's sign: between two turns there is nothing for it to do. */
void sr_turn_change(sr_engine *e)
{
    uint32_t turn = atomic_load_explicit(&e->turn, memory_order_relaxed) + 1;
    atomic_store_explicit(&e->turn, turn, memory_order_seq_cst); /* and then look: see park and drive */
    if (turn & 1) {
        if (atomic_load_explicit(&e->parked, memory_order_seq_cst))
            sr_companion_unpark(e);
    } else if (atomic_load_explicit(&e->driving, memory_order_seq_cst)) {
        sr_companion_nudge(e);
    }
}

/*
 * A worker that retires may stay for long, for its slow clients; its successor needs a row of its own. Without
 * one this worker goes on: else all could be retiring and nobody accept.
 */
static bool successor_has_room(const sr_engine *e)
{
    return !e->scoreboard ||
           sr_scoreboard_room(e->scoreboard, atomic_load_explicit(&e->row->generation, memory_order_relaxed));
}

/* The bytes of the task are done with: what follows them is kept. */
static void task_close(sr_engine *e, sr_conn *c)
{
    size_t used = e->current_used;
    sr_bytes rest = sr_bytes_of(e->current_view.at + used, e->current_view.len - used);
    sr_conn_forget_request(c, e->current_borrowed ? 0 : used);
    if (e->current_borrowed && !sr_buffer_add_bytes(&c->in, rest)) {
        c->keep_alive = false; /* no memory for the next request: answer this one and close */
        c->linger = true;
    }
    e->current = NULL;
    e->current_view = (sr_bytes){0};
    e->served++;
    if (e->config.max_requests && e->served >= e->config.max_requests && successor_has_room(e))
        e->retiring = true;
    sr_row_publish(e, SR_WORKER_BUSY);
}

void sr_engine_lend(sr_engine *e)
{
    if (e->current)
        task_close(e, e->current);
    atomic_store_explicit(&e->lent_at, e->now, memory_order_relaxed);
    e->helm_held = false;
    sr_helm_leave(&e->helm);
}

void sr_engine_return(sr_engine *e)
{
    if (!sr_helm_try(&e->helm)) {
        atomic_store_explicit(&e->wants, 1, memory_order_relaxed);
        sr_helm_take(&e->helm);
        atomic_store_explicit(&e->wants, 0, memory_order_relaxed);
    }
    e->helm_held = true;
    sr_engine_tick(e);
    if (atomic_load_explicit(&e->turn, memory_order_relaxed) & 1)
        e->service_ns +=
            (e->now - atomic_load_explicit(&e->lent_at, memory_order_relaxed) - e->service_ns) / 8;
}

bool sr_engine_keeps(const sr_engine *e, const sr_conn *c)
{
    const sr_config *config = &e->config;
    return c->keep_alive && config->keepalive && !c->borrowed &&
           (!sr_engine_draining(e) || sr_engine_gives(e)) &&
           (!config->max_keepalive_reqs || c->requests < config->max_keepalive_reqs);
}
