/*
 * turn: what happens around a request that is with the application: the helm is let go and taken back, the response
 * ends, and limits that count requests are looked at.
 */
#include "parts.h"

#include <time.h>

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

/* False: it did so before, or has to go on. */
static bool retire(sr_engine *e, sr_reason reason)
{
    if (e->retiring || !successor_has_room(e))
        return false;
    e->reason = reason;
    return e->retiring = true;
}

/* The bytes of the task are done with: what follows them is kept. */
static void task_close(sr_engine *e, sr_conn *c)
{
    size_t used = e->current_used;
    if (e->log && (e->config.request_ns || e->config.stream_ns)) {
        sr_buffer_reset(&e->served_head);
        sr_buffer_add(&e->served_head, e->current_view.at, c->head_len);
    }
    sr_bytes rest = sr_bytes_of(e->current_view.at + used, e->current_view.len - used);
    sr_conn_forget_request(c, e->current_borrowed ? 0 : used);
    if (e->current_borrowed && !sr_buffer_add_bytes(&c->in, rest)) {
        c->keep_alive = false; /* no memory for the next request: answer this one and close */
        c->linger = true;
    }
    e->current = NULL;
    e->current_view = (sr_bytes){0};
    if (++e->served == e->config.soon_requests)
        e->soon = SR_REASON_REQUESTS;
    if (e->config.max_requests && e->served >= e->config.max_requests)
        retire(e, SR_REASON_REQUESTS);
    sr_row_publish(e, SR_WORKER_BUSY);
}

void sr_turn_begin(sr_engine *e, const sr_task *task)
{
    const sr_request *r = task->request;
    sr_conn *c = e->serving = task->conn;
    c->given_at = e->now;
    sr_tally_add(&e->row->tally.requests, 1);
    sr_histogram_add(&e->row->tally.queue, (uint64_t)(e->now - c->ready_at));
    /* "METHOD TARGET" as it came */
    sr_row_begin(e->row, task->base + r->method.at, r->target.at + r->target.len - r->method.at, &c->client,
                 c->ready_at);
}

bool sr_turn_end(sr_engine *e)
{
    uint64_t max = e->config.max_rss;
    sr_row_end(e->row);
    if (!max)
        return false;
    e->rss = sr_resident_bytes(&e->resident);
    if (e->rss > max - max / 10 && !e->soon)
        e->soon = SR_REASON_RSS;
    return e->rss > max && retire(e, SR_REASON_RSS);
}

/* For who has to judge this worker from outside, should it be stopped: the limit of the request does not hold any more. */
static void tell_begun(sr_engine *e, const sr_conn *c)
{
    if (c->whole && !c->out)
        atomic_store_explicit(&e->row->status, (uint32_t)c->status, memory_order_relaxed);
    else
        sr_row_answering(e->row);
}

void sr_engine_lend(sr_engine *e)
{
    if (e->current)
        task_close(e, e->current);
    if (e->serving && e->serving->out)
        sr_outflow_behind(e, e->serving);
    if (e->serving && e->serving->sent)
        tell_begun(e, e->serving);
    atomic_store_explicit(&e->lent_at, e->now, memory_order_relaxed);
    e->helm_held = false;
    sr_helm_leave(&e->helm);
    e->inside = 0;
}

/*
 * A mutex does not wait for the one it has woken: a stream of small pieces would have it back before the companion runs,
 * and nobody else's bytes were looked at until its end. 1 ms at most, as the companion may have no processor.
 */
static void companion_first(sr_engine *e)
{
    static const struct timespec courtesy = {.tv_nsec = 50 * 1000};
    for (int i = 0; i < 10 && atomic_load_explicit(&e->asks, memory_order_relaxed); i++)
        nanosleep(&courtesy, NULL);
}

void sr_engine_return(sr_engine *e)
{
    e->inside = 1; /* before the lock is taken */
    if (atomic_load_explicit(&e->asks, memory_order_relaxed))
        companion_first(e);
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

/* The whole server, soon or now */
static bool leaves(const sr_engine *e)
{
    return e->scoreboard && atomic_load_explicit(&e->scoreboard->stopping, memory_order_relaxed);
}

bool sr_engine_keeps(const sr_engine *e, const sr_conn *c)
{
    const sr_config *config = &e->config;
    return c->keep_alive && config->keepalive && !c->borrowed &&
           (!sr_engine_draining(e) || sr_engine_gives(e)) && !leaves(e) &&
           (!config->max_keepalive_reqs || c->requests < config->max_keepalive_reqs);
}

/* --- the end of a response --- */

/* The application is done. True: the companion has ended it before, what the peer may still send is thrown away. */
static bool was_cut(sr_engine *e, sr_conn *c)
{
    e->serving = NULL;
    c->back_at = e->now;
    atomic_store_explicit(&e->row->status, (uint32_t)c->status, memory_order_relaxed);
    if (!c->cut)
        return false;
    sr_outflow_close(e, c, c->why);
    return true;
}

static void finish(sr_engine *e, sr_conn *c)
{
    if (was_cut(e, c))
        return;
    if (c->gone)
        sr_conn_close(e, c, c->why);
    else
        sr_outflow_end(e, c, !c->keep_alive);
}

static void cut(sr_engine *e, sr_conn *c)
{
    if (was_cut(e, c))
        return;
    c->broken = true;
    if (!c->gone)
        c->why = SR_CLOSED_ERROR;
    if (c->gone || c->minor == 0) /* which is a reset then */
        sr_conn_close(e, c, c->why);
    else
        sr_outflow_end(e, c, true);
}

void sr_engine_finish(sr_engine *e, sr_conn *c)
{
    finish(e, c);
    if (e->log)
        sr_accesslog_keep(e, c);
}

void sr_engine_abort(sr_engine *e, sr_conn *c)
{
    cut(e, c);
    if (e->log)
        sr_accesslog_keep(e, c);
}

void sr_engine_detach(sr_engine *e, sr_conn *c)
{
    e->serving = NULL;
    c->back_at = e->now;
    atomic_store_explicit(&e->row->status, 0, memory_order_relaxed);
    sr_account_over(e, c, SR_OVER_TAKEN);
    sr_conn_unwatch(e, c);
    sr_conn_close(e, c, SR_CLOSED_APPLICATION);
}
