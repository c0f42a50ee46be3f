#include "parts.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { TURNS_BETWEEN_POLLS = 16, ACCEPT_PAUSE_MS = 100 };

static void tick(sr_engine *e)
{
    e->now = sr_clock_monotonic();
    int64_t wall = sr_clock_wall_seconds();
    if (wall != e->wall) {
        e->wall = wall;
        sr_date_format(e->date, wall);
    }
}

/* --- lifecycle --- */

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
    e->config = *config;
    sr_helm_init(&e->helm);
    sr_link_init(&e->all);
    sr_link_init(&e->turns);
    for (int i = 0; i < SR_DEADLINE_KINDS; i++)
        sr_link_init(&e->deadlines[i]);
    e->limit[SR_DEADLINE_HEAD] = config->header_ns;
    e->limit[SR_DEADLINE_BODY] = config->body_ns;
    e->limit[SR_DEADLINE_IDLE] = config->idle_ns;
    e->limit[SR_DEADLINE_WRITE] = config->write_ns;
    e->limit[SR_DEADLINE_LINGER] = config->linger_ns;
    e->scoreboard = scoreboard;
    e->row = scoreboard && slot < scoreboard->slots ? &scoreboard->rows[slot] : &e->no_row;
    atomic_store_explicit(&e->row->pid, getpid(), memory_order_relaxed);
    e->control = (sr_source){.fd = control, .kind = SR_SOURCE_CONTROL};
    if (control >= 0 && (err = sr_loop_add(&e->loop, &e->control, EPOLLIN)) != 0) {
        sr_engine_free(e);
        return err;
    }
    tick(e);
    *out = e;
    return 0;
}

void sr_engine_free(sr_engine *e)
{
    if (!e)
        return;
    while (!e->forked && !sr_link_alone(&e->all))
        sr_conn_close(e, SR_LIST_ENTRY(e->all.next, sr_conn, all));
    if (!e->forked)
        sr_loop_free(&e->loop);
    free(e->scratch);
    free(e);
}

int sr_engine_listen(sr_engine *e, int fd, bool is_unix)
{
    if (e->n_listeners == SR_LISTENERS_MAX)
        return ENOSPC;
    e->listeners[e->n_listeners++] =
        (sr_listener){.source = {.fd = fd, .kind = SR_SOURCE_LISTENER}, .is_unix = is_unix};
    return 0;
}

/* EPOLLEXCLUSIVE: a new connection wakes one waiting worker, not all. */
static void listeners_watch(sr_engine *e, bool on)
{
    for (unsigned i = 0; i < e->n_listeners; i++) {
        sr_listener *l = &e->listeners[i];
        if (on && !l->registered)
            l->registered = sr_loop_add(&e->loop, &l->source, EPOLLIN | EPOLLEXCLUSIVE) == 0;
        else if (!on && l->registered)
            l->registered = sr_loop_remove(&e->loop, &l->source) != 0;
    }
    e->listening = on;
}

/* --- what the other files use --- */

void sr_deadline_set(sr_engine *e, sr_conn *c, sr_deadline_kind kind)
{
    c->deadline = e->now + e->limit[kind];
    sr_link_append(&e->deadlines[kind], &c->timer);
}

bool sr_conn_watch(sr_engine *e, sr_conn *c, uint32_t events)
{
    if (c->registered && c->interest == events)
        return true;
    int err = c->registered ? sr_loop_change(&e->loop, &c->source, events)
                            : sr_loop_add(&e->loop, &c->source, events);
    if (err) { /* ENOSPC (max_user_watches) or ENOMEM: it could never be served again */
        sr_conn_close(e, c);
        return false;
    }
    c->registered = true;
    c->interest = events;
    return true;
}

void sr_conn_unwatch(sr_engine *e, sr_conn *c)
{
    if (c->registered)
        sr_loop_remove(&e->loop, &c->source);
    c->registered = false;
}

void sr_conn_close(sr_engine *e, sr_conn *c)
{
    for (int i = e->event; i < e->n_events; i++)
        if (e->events[i].data.ptr == c)
            e->events[i].data.ptr = NULL; /* the batch at hand must not lead to freed memory */
    sr_link_remove(&c->timer);
    sr_link_remove(&c->turn);
    sr_link_remove(&c->all);
    e->n_conns--;
    atomic_store_explicit(&e->row->connections, e->n_conns, memory_order_relaxed);
    if (c->out)
        e->pending -= sr_output_memory(c->out);
    sr_conn_free(c);
}

bool sr_engine_draining(const sr_engine *e)
{
    return e->drain != SR_DRAIN_NO || e->retiring;
}

/* --- the loop --- */

static int timeout_ms(const sr_engine *e)
{
    if (!sr_link_alone(&e->turns))
        return 0;
    int64_t first = e->accept_again ? e->accept_again : INT64_MAX;
    for (int i = 0; i < SR_DEADLINE_KINDS; i++) {
        const sr_link *head = &e->deadlines[i];
        if (sr_link_alone(head))
            continue;
        int64_t deadline = SR_LIST_ENTRY(head->next, sr_conn, timer)->deadline;
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

static void expire(sr_engine *e)
{
    for (int kind = 0; kind < SR_DEADLINE_KINDS; kind++)
        while (!sr_link_alone(&e->deadlines[kind])) {
            sr_conn *c = SR_LIST_ENTRY(e->deadlines[kind].next, sr_conn, timer);
            if (c->deadline > e->now)
                break;
            sr_deadline_clear(c);
            sr_outflow_expired(e, c, (sr_deadline_kind)kind);
        }
    if (e->accept_again && e->accept_again <= e->now) {
        e->accept_again = 0;
        listeners_watch(e, true);
    }
}

/* False: a signal came, or an error that the next call may not see any more. */
static bool wait_events(sr_engine *e)
{
    expire(e);
    e->served_from_turns = 0;
    if (atomic_load_explicit(&e->row->state, memory_order_relaxed) != SR_WORKER_IDLE) {
        atomic_store_explicit(&e->row->since, e->now, memory_order_relaxed);
        atomic_store_explicit(&e->row->state, SR_WORKER_IDLE, memory_order_relaxed);
    }
    e->event = 0;
    e->n_events = sr_loop_wait(&e->loop, e->events, timeout_ms(e));
    tick(e);
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
    sr_loop_remove(&e->loop, &e->control); /* end of file: the supervisor is gone */
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
    case SR_CONN_READY:
    case SR_CONN_SERVING:
        sr_conn_unwatch(e, c); /* level-triggered: it would be reported again and again */
        return SR_INTAKE_WAIT;
    }
    return SR_INTAKE_WAIT;
}

static sr_next event_dispatch(sr_engine *e, void *ptr, sr_task *task, bool *wake)
{
    sr_source *s = ptr;
    sr_intake got = SR_INTAKE_WAIT;
    switch (s->kind) {
    case SR_SOURCE_WAKE:
        sr_loop_woken(&e->loop);
        *wake = true;
        break;
    case SR_SOURCE_CONTROL:
        control_readable(e);
        break;
    case SR_SOURCE_LISTENER:
        if (e->listening)
            got = sr_intake_accept(e, ptr, task);
        break;
    case SR_SOURCE_CONN:
        got = conn_event(e, ptr, task);
        break;
    }
    return got == SR_INTAKE_READY ? SR_NEXT_REQUEST : SR_NEXT_WAKE;
}

/* True when nothing is left to wait for. Only between two batches of events: it closes connections. */
static bool drain_step(sr_engine *e)
{
    if (e->listening || e->accept_again) {
        listeners_watch(e, false);
        e->accept_again = 0;
        e->limit[SR_DEADLINE_LINGER] = e->config.linger_ns < SR_SECOND ? e->config.linger_ns : SR_SECOND;
        sr_link *lingering = &e->deadlines[SR_DEADLINE_LINGER];
        sr_link *last = lingering->prev;
        for (sr_link *l = lingering->next; l != lingering && !sr_link_alone(lingering);) {
            sr_link *next = l->next;
            sr_deadline_set(e, SR_LIST_ENTRY(l, sr_conn, timer), SR_DEADLINE_LINGER);
            if (l == last)
                break;
            l = next;
        }
    }
    while (!sr_link_alone(&e->deadlines[SR_DEADLINE_IDLE])) {
        sr_conn *c = SR_LIST_ENTRY(e->deadlines[SR_DEADLINE_IDLE].next, sr_conn, timer);
        sr_deadline_clear(c);
        sr_outflow_expired(e, c, SR_DEADLINE_IDLE);
    }
    return e->n_conns == 0;
}

sr_next sr_engine_next(sr_engine *e, sr_task *task)
{
    if (!e->helm_held)
        sr_engine_return(e);
    if (!e->listening && !e->accept_again && !sr_engine_draining(e))
        listeners_watch(e, true);
    for (;;) {
        if (e->drain == SR_DRAIN_NOW)
            return SR_NEXT_DONE;
        if (e->event < e->n_events) {
            void *ptr = e->events[e->event++].data.ptr;
            bool wake = false;
            if (ptr && event_dispatch(e, ptr, task, &wake) == SR_NEXT_REQUEST)
                return SR_NEXT_REQUEST;
            if (wake)
                return SR_NEXT_WAKE;
            continue;
        }
        if (!sr_link_alone(&e->turns) && e->served_from_turns < TURNS_BETWEEN_POLLS) {
            sr_conn *c = SR_LIST_ENTRY(e->turns.next, sr_conn, turn);
            sr_link_remove(&c->turn);
            e->served_from_turns++;
            if (sr_intake_turn(e, c, task) == SR_INTAKE_READY)
                return SR_NEXT_REQUEST;
            continue;
        }
        if (sr_engine_draining(e) && drain_step(e))
            return SR_NEXT_DONE;
        if (!wait_events(e))
            return SR_NEXT_WAKE;
    }
}

void sr_engine_pause_accept(sr_engine *e)
{
    listeners_watch(e, false);
    e->accept_again = e->now + ACCEPT_PAUSE_MS * SR_MILLISECOND;
}

/* --- the helm --- */

void sr_engine_lend(sr_engine *e)
{
    sr_conn *c = e->current;
    if (c && e->current_view.at) {
        size_t used = e->current_used;
        sr_bytes rest = sr_bytes_of(e->current_view.at + used, e->current_view.len - used);
        sr_conn_forget_request(c, e->current_borrowed ? 0 : used);
        if (e->current_borrowed && !sr_buffer_add_bytes(&c->in, rest)) {
            c->keep_alive = false; /* no memory for the next request: answer this one and close */
            c->linger = true;
        }
        e->current_view = (sr_bytes){0};
        e->served++;
        if (e->config.max_requests && e->served >= e->config.max_requests)
            e->retiring = true;
        atomic_store_explicit(&e->row->requests, e->served, memory_order_relaxed);
        atomic_store_explicit(&e->row->since, e->now, memory_order_relaxed);
        atomic_store_explicit(&e->row->state, SR_WORKER_BUSY, memory_order_relaxed);
    }
    e->helm_held = false;
    sr_helm_leave(&e->helm);
}

void sr_engine_return(sr_engine *e)
{
    sr_helm_take(&e->helm);
    e->helm_held = true;
    tick(e);
}

void sr_engine_wake(sr_engine *e)
{
    sr_loop_wake(&e->loop);
}

void sr_engine_drain(sr_engine *e)
{
    if (e->drain == SR_DRAIN_NO)
        e->drain = SR_DRAIN_ASKED;
    sr_loop_wake(&e->loop);
}

void sr_engine_stop(sr_engine *e)
{
    e->drain = SR_DRAIN_NOW;
    sr_loop_wake(&e->loop);
}

bool sr_engine_keeps(const sr_engine *e, const sr_conn *c)
{
    const sr_config *config = &e->config;
    return c->keep_alive && config->keepalive && !c->borrowed && !sr_engine_draining(e) &&
           (!config->max_keepalive_reqs || c->requests < config->max_keepalive_reqs);
}
