#include "companion.h"
#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { TURNS_BETWEEN_POLLS = 16, QUEUES_PAUSE_MS = 100, GIVE_PATIENCE_MS = 50 };

void sr_engine_tick(sr_engine *e)
{
    e->now = sr_clock_monotonic();
    int64_t wall = sr_clock_wall_seconds();
    if (wall == e->wall)
        return;
    e->wall = wall;
    e->wall_offset = sr_clock_wall() - e->now;
    sr_date_format(e->date, wall);
}

/* --- lifecycle --- */

static void limits_init(sr_engine *e, const sr_config *config)
{
    e->config = *config;
    e->limit[SR_DEADLINE_HEAD] = config->header_ns;
    e->limit[SR_DEADLINE_BODY] = config->body_ns;
    e->limit[SR_DEADLINE_IDLE] = config->idle_ns;
    e->limit[SR_DEADLINE_WRITE] = config->write_ns;
    e->limit[SR_DEADLINE_QUEUE] = config->queue_ns ? config->queue_ns : SR_NO_LIMIT;
    e->limit[SR_DEADLINE_LINGER] = config->linger_ns;
    e->waited_too_long = 503;
    if (config->request_ns && config->request_ns < e->limit[SR_DEADLINE_QUEUE]) {
        e->limit[SR_DEADLINE_QUEUE] = config->request_ns;
        e->waited_too_long = 504;
    }
}

int sr_engine_new(sr_engine **out, const sr_config *config, sr_scoreboard *scoreboard, uint32_t slot,
                  int control)
{
    sr_engine *e = calloc(1, sizeof *e);
    char *scratch = malloc(SR_SCRATCH);
    int err = e && scratch ? sr_loop_init(&e->loop) : ENOMEM;
    if (err) {
        free(e);
        free(scratch);
        return err;
    }
    e->scratch = scratch;
    limits_init(e, config);
    sr_helm_init(&e->helm);
    sr_link_init(&e->all);
    sr_link_init(&e->turns);
    for (int i = 0; i < SR_DEADLINE_KINDS; i++)
        sr_link_init(&e->deadlines[i]);
    e->exchange = (sr_exchange){-1, -1};
    e->resident.fd = -1;
    sr_room_init(e);
    e->scoreboard = scoreboard;
    e->n_rows = scoreboard ? scoreboard->slots : 0;
    e->row = scoreboard && slot < scoreboard->slots ? &scoreboard->rows[slot] : &e->no_row;
    atomic_store_explicit(&e->row->pid, getpid(), memory_order_relaxed);
    e->control = (sr_source){.fd = control, .kind = SR_SOURCE_CONTROL};
    e->bell = (sr_source){.fd = e->row == &e->no_row ? -1 : e->row->bell, .kind = SR_SOURCE_BELL};
    if (control >= 0)
        err = sr_loop_add(&e->loop, &e->control, EPOLLIN);
    if (!err && e->bell.fd >= 0)
        err = sr_loop_add(&e->loop, &e->bell, EPOLLIN);
    if (err) {
        sr_engine_free(e);
        return err;
    }
    if (config->max_rss)
        sr_resident_open(&e->resident);
    sr_engine_tick(e);
    e->window_at = e->now;
    *out = e;
    return 0;
}

static void close_all(sr_engine *e)
{
    while (!sr_link_alone(&e->all)) {
        sr_conn *c = SR_LIST_ENTRY(e->all.next, sr_conn, all);
        sr_conn_close(e, c, c->state == SR_CONN_LINGER ? c->why : SR_CLOSED_STOP);
    }
    atomic_store_explicit(&e->row->connections, 0, memory_order_relaxed); /* none is left to count */
}

void sr_engine_free(sr_engine *e)
{
    if (!e)
        return;
    if (!e->forked) {
        sr_companion_stop(e);
        close_all(e);
        sr_loop_free(&e->loop);
        sr_helm_free(&e->helm);
    }
    sr_accesslog_end(e);
    sr_resident_close(&e->resident);
    sr_buffer_free(&e->served_head);
    free(e->scratch);
    free(e);
}

int sr_engine_exchange(sr_engine *e, int give, int take)
{
    e->exchange = (sr_exchange){.give = give, .take = take};
    e->takes = (sr_source){.fd = take, .kind = SR_SOURCE_EXCHANGE};
    return 0;
}

int sr_engine_listen(sr_engine *e, int fd, bool is_unix)
{
    if (e->n_listeners == SR_LISTENERS_MAX)
        return ENOSPC;
    e->listeners[e->n_listeners++] =
        (sr_listener){.source = {.fd = fd, .kind = SR_SOURCE_LISTENER}, .is_unix = is_unix};
    return 0;
}

/* EPOLLEXCLUSIVE: what arrives wakes one waiting worker, not all; a worker that does not wait is passed over.
 */
static void queue_watch(sr_engine *e, sr_source *s, bool *registered, bool on)
{
    if (on && !*registered)
        *registered = sr_loop_add(&e->loop, s, EPOLLIN | EPOLLEXCLUSIVE) == 0;
    if (on && !*registered) /* ENOSPC (max_user_watches) or ENOMEM: not deaf for ever */
        e->queues_again = e->now + QUEUES_PAUSE_MS * SR_MILLISECOND;
    else if (!on && *registered)
        *registered = sr_loop_remove(&e->loop, s) != 0;
}

static void takes_watch(sr_engine *e, bool on)
{
    if (e->takes.fd >= 0 && e->exchange.take >= 0)
        queue_watch(e, &e->takes, &e->takes_registered,
                    on && !e->queues_again && e->n_conns < e->config.max_connections);
}

void sr_engine_listeners(sr_engine *e, bool on)
{
    for (unsigned i = 0; i < e->n_listeners; i++) {
        sr_listener *l = &e->listeners[i];
        queue_watch(e, &l->source, &l->registered, on && !e->queues_again && !l->over);
    }
    e->listening = on;
}

void sr_engine_queues(sr_engine *e, bool on)
{
    sr_engine_listeners(e, on);
    takes_watch(e, on);
}

/*
 * EPOLLEXCLUSIVE has woken us alone for what we can't take: without this nobody else is, until something else comes.
 */
static void wake_colleagues(const sr_engine *e)
{
    if (e->stuck)
        e->stuck(e->with);
    if (e->left) /* an edge: the bells of the scoreboard are descriptors of workers, which it does not have */
        return;
    for (uint32_t i = 0; e->scoreboard && i < e->scoreboard->slots; i++) {
        sr_row *row = &e->scoreboard->rows[i];
        if (row != e->row && atomic_load_explicit(&row->state, memory_order_relaxed) == SR_WORKER_IDLE)
            sr_scoreboard_ring(row);
    }
}

void sr_engine_pause(sr_engine *e)
{
    wake_colleagues(e);
    e->queues_again = e->now + QUEUES_PAUSE_MS * SR_MILLISECOND;
    sr_engine_listeners(e, e->listening);
    takes_watch(e, false);
}

void sr_engine_resume(sr_engine *e)
{
    if (!e->queues_again || e->queues_again > e->now)
        return;
    e->queues_again = 0;
    e->made_room = false;
    sr_room_recount(e);
    sr_engine_listeners(e, e->listening);
}

/* --- the loop --- */

bool sr_engine_draining(const sr_engine *e)
{
    return e->drain != SR_DRAIN_NO || e->retiring;
}

bool sr_engine_gives(const sr_engine *e)
{
    return e->exchange.give >= 0 && !e->orphaned && e->scoreboard &&
           atomic_load_explicit(&e->scoreboard->stopping, memory_order_relaxed) != SR_STOPPING_NOW;
}

void sr_row_publish(sr_engine *e, sr_worker_state state)
{
    sr_row *row = e->row;
    atomic_store_explicit(&row->connections, e->n_conns, memory_order_relaxed);
    atomic_store_explicit(&row->idle, e->n_idle, memory_order_relaxed);
    atomic_store_explicit(&row->oldest, sr_deadline_first(e, SR_DEADLINE_IDLE), memory_order_relaxed);
    if (!e->left) /* an edge counts them itself */
        atomic_store_explicit(&row->waiting, e->n_waiting, memory_order_relaxed);
    if (atomic_load_explicit(&row->state, memory_order_relaxed) != state) {
        atomic_store_explicit(&row->since, e->now, memory_order_relaxed);
        atomic_store_explicit(&row->state, state, memory_order_relaxed);
    }
}

/* A retiring worker serves no more but gives away, unless nobody takes it for a while. */
static bool serves(const sr_engine *e, const sr_conn *c)
{
    return !sr_engine_draining(e) || !sr_engine_gives(e) ||
           e->now - c->ready_at > GIVE_PATIENCE_MS * SR_MILLISECOND;
}

/* There are connections whose bytes are here, to be served by us. */
static bool turns_serve(const sr_engine *e)
{
    return !sr_link_alone(&e->turns) && serves(e, SR_LIST_ENTRY(e->turns.next, sr_conn, turn));
}

/* False: a signal came. */
static bool wait_events(sr_engine *e)
{
    int ms = turns_serve(e) ? 0 : sr_deadlines_timeout(e);
    int64_t before = e->now;
    sr_row_publish(e, sr_engine_draining(e) ? SR_WORKER_DRAINING : ms ? SR_WORKER_IDLE : SR_WORKER_BUSY);
    e->served_from_turns = 0;
    e->event = 0;
    e->n_events = sr_loop_wait(&e->loop, e->events, ms);
    sr_engine_tick(e);
    sr_surplus_window(e, e->now - before);
    if (e->n_events >= 0)
        return true;
    e->n_events = 0;
    return false;
}

static void control_readable(sr_engine *e)
{
    char byte;
    ssize_t n = read(e->control.fd, &byte, 1);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    sr_loop_remove(&e->loop, &e->control); /* end of file: the supervisor is gone, and nobody replaces us */
    e->orphaned = true;
    sr_engine_drain(e);
}

static sr_intake conn_event(sr_engine *e, sr_conn *c, sr_task *task)
{
    switch ((sr_conn_state)c->state) {
    case SR_CONN_IDLE:
    case SR_CONN_HEAD:
    case SR_CONN_BODY:
        return sr_link_alone(&c->turn) ? sr_intake_readable(e, c, task) : SR_INTAKE_WAIT;
    case SR_CONN_FLUSH:
        sr_outflow_writable(e, c);
        return SR_INTAKE_WAIT;
    case SR_CONN_LINGER:
        sr_outflow_lingering(e, c);
        return SR_INTAKE_WAIT;
    case SR_CONN_SERVING:
        if (c->out && c->interest == EPOLLOUT && !c->blocked) {
            sr_outflow_serving(e, c);
            return SR_INTAKE_WAIT;
        }
        sr_conn_unwatch(e, c);
        return SR_INTAKE_WAIT;
    case SR_CONN_READY:
        sr_conn_unwatch(e, c); /* level-triggered: it would be reported again and again */
        return SR_INTAKE_WAIT;
    }
    return SR_INTAKE_WAIT;
}

sr_intake sr_engine_event(sr_engine *e, sr_source *s, sr_task *task, bool *wake)
{
    switch (s->kind) {
    case SR_SOURCE_WAKE:
        sr_loop_woken(&e->loop);
        *wake = true;
        break;
    case SR_SOURCE_CONTROL:
        control_readable(e);
        break;
    case SR_SOURCE_BELL:
        sr_room_asked(e);
        if (e->listening &&
            !e->stepping) { /* and whoever could not accept has rung: added again, they are looked at */
            sr_engine_queues(e, false);
            sr_engine_queues(e, true);
        }
        break;
    case SR_SOURCE_EXCHANGE:
        if (!e->takes_registered)
            break;
        sr_handover_take_due(e, true);
        break;
    case SR_SOURCE_LISTENER:
        if (((sr_listener *)s)->registered)
            return sr_intake_accept(e, (sr_listener *)s, task);
        break;
    case SR_SOURCE_LOG:
        sr_accesslog_timer(e);
        break;
    case SR_SOURCE_CONN:
        return conn_event(e, (sr_conn *)s, task);
    }
    return SR_INTAKE_WAIT;
}

/* What is due before the next wait. */
static void between_batches(sr_engine *e)
{
    sr_deadlines_expire(e);
    sr_engine_resume(e);
    bool full = e->n_conns >= e->config.max_connections;
    if (!sr_engine_draining(e) && (!e->listening || full == e->takes_registered))
        sr_engine_queues(e, true);
}

/* One event of the batch, or one connection whose bytes are here. False: there is neither. */
static bool work(sr_engine *e, sr_task *task, bool *wake, bool *ready)
{
    sr_intake got = SR_INTAKE_WAIT;
    bool waited = false;
    if (e->event < e->n_events) {
        sr_source *s = e->events[e->event++].data.ptr;
        if (s)
            got = sr_engine_event(e, s, task, wake);
    } else if (turns_serve(e) &&
               e->served_from_turns < (sr_handover_others_wait(e) ? 1 : TURNS_BETWEEN_POLLS)) {
        sr_conn *c = SR_LIST_ENTRY(e->turns.next, sr_conn, turn);
        waited = c->state == SR_CONN_READY;
        sr_link_remove(&c->turn);
        e->served_from_turns++;
        got = sr_intake_turn(e, c, task);
    } else {
        return false;
    }
    *ready = got == SR_INTAKE_READY && serves(e, task->conn) && (waited || !sr_handover_others_wait(e));
    if (got == SR_INTAKE_READY && !*ready)
        sr_intake_park(e, task);
    return true;
}

static sr_next next(sr_engine *e, sr_task *task)
{
    for (;;) {
        bool wake = false, ready = false;
        if (e->drain == SR_DRAIN_NOW)
            return SR_NEXT_DONE;
        sr_surplus_share(e);
        if (work(e, task, &wake, &ready)) {
            if (ready)
                return SR_NEXT_REQUEST;
            if (wake)
                return SR_NEXT_WAKE;
            continue;
        }
        between_batches(e);
        if (sr_engine_draining(e) && sr_drain_step(e))
            return SR_NEXT_DONE;
        if (!wait_events(e))
            return SR_NEXT_WAKE;
    }
}

sr_next sr_engine_next(sr_engine *e, sr_task *task)
{
    bool was_busy = atomic_load_explicit(&e->turn, memory_order_relaxed) & 1;
    if (was_busy)
        sr_turn_change(e);
    if (!e->helm_held)
        sr_engine_return(e);
    if (was_busy && sr_turn_end(e))
        return SR_NEXT_WAKE;
    if (e->soon && !e->soon_said && !sr_engine_draining(e)) {
        e->soon_said = true;
        return SR_NEXT_SOON;
    }
    sr_next what = next(e, task);
    if (what == SR_NEXT_REQUEST) {
        sr_turn_begin(e, task);
        sr_turn_change(e);
    }
    return what;
}

void sr_engine_wake(sr_engine *e)
{
    sr_loop_wake(&e->loop);
}

void sr_engine_drain(sr_engine *e)
{
    int no = SR_DRAIN_NO;
    atomic_compare_exchange_strong(&e->drain, &no, SR_DRAIN_ASKED);
    sr_loop_wake(&e->loop);
}

void sr_engine_stop(sr_engine *e)
{
    e->drain = SR_DRAIN_NOW;
    sr_loop_wake(&e->loop);
}
