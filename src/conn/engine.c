#include "engine.h"

#include "capacity.h"
#include "deadline.h"
#include "expire.h"
#include "relay.h"
#include "spools.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum { LISTENERS_PAUSE_MS = 100 };

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

int sr_engine_new(sr_engine **out, const sr_config *config, int control)
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
    sr_link_init(&e->all);
    sr_leased_init(&e->leased);
    sr_link_init(&e->buffered);
    sr_link_init(&e->handshakes);
    sr_link_init(&e->endings);
    sr_deadlines_init(e);
    e->row = &e->no_row;
    sr_capacity_init(e);
    e->control = (sr_source){.fd = control, .kind = SR_SOURCE_CONTROL};
    if (control >= 0 && (err = sr_loop_add(&e->loop, &e->control, EPOLLIN))) {
        sr_engine_free(e);
        return err;
    }
    sr_engine_tick(e);
    if (getrandom(&e->nonce, sizeof e->nonce, GRND_NONBLOCK) != (ssize_t)sizeof e->nonce)
        e->nonce = (uint64_t)sr_clock_wall() ^ (uint64_t)getpid() << 48;
    *out = e;
    return 0;
}

static void close_all(sr_engine *e)
{
    while (!sr_link_alone(&e->all)) {
        sr_conn *c = SR_LIST_ENTRY(e->all.next, sr_conn, all);
        sr_conn_close(e, c, c->state == SR_CONN_LINGER ? c->why : SR_CLOSED_STOP);
    }
    /* they are closed, and must not be counted as lost */
    atomic_store_explicit(&e->row->connections, 0, memory_order_relaxed);
    atomic_store_explicit(&e->row->waiting, 0, memory_order_relaxed);
}

void sr_engine_free(sr_engine *e)
{
    if (!e)
        return;
    close_all(e);
    sr_leased_free(&e->leased);
    sr_loop_free(&e->loop);
    sr_accesslog_end(e);
    sr_tls_free(e->tls);
    free(e->scratch);
    free(e);
}

/* --- listeners --- */

int sr_engine_listen(sr_engine *e, int fd, bool is_unix)
{
    if (e->n_listeners == SR_LISTENERS_MAX)
        return ENOSPC;
    e->listeners[e->n_listeners++] =
        (sr_listener){.source = {.fd = fd, .kind = SR_SOURCE_LISTENER}, .is_unix = is_unix};
    return 0;
}

/* EPOLLEXCLUSIVE: a new connection wakes one waiting edge, not all of them. */
static void watch(sr_engine *e, sr_listener *l, bool on)
{
    if (on && !l->registered)
        l->registered = sr_loop_add(&e->loop, &l->source, EPOLLIN | EPOLLEXCLUSIVE) == 0;
    if (on && !l->registered) /* ENOSPC (max_user_watches) or ENOMEM: tried again later */
        e->listeners_again = e->now + LISTENERS_PAUSE_MS * SR_MILLISECOND;
    else if (!on && l->registered)
        l->registered = sr_loop_remove(&e->loop, &l->source) != 0;
}

void sr_engine_listeners(sr_engine *e, bool on)
{
    for (unsigned i = 0; i < e->n_listeners; i++)
        watch(e, &e->listeners[i], on && !e->listeners_again && !e->listeners[i].over);
    e->listening = on;
}

/* EPOLLEXCLUSIVE has woken only this edge, so it tells the others to look. */
void sr_engine_pause(sr_engine *e)
{
    sr_counters_add(&e->row->counters.paused, 1);
    if (e->stuck)
        e->stuck(e->with);
    e->listeners_again = e->now + LISTENERS_PAUSE_MS * SR_MILLISECOND;
    sr_engine_listeners(e, e->listening);
}

void sr_engine_resume(sr_engine *e)
{
    if (!e->listeners_again || e->listeners_again > e->now)
        return;
    e->listeners_again = 0;
    e->made_room = false;
    sr_capacity_recount(e);
    sr_engine_listeners(e, e->listening);
}

/* --- what others see, and draining --- */

void sr_engine_publish(sr_engine *e, sr_worker_state state)
{
    sr_row *row = e->row;
    atomic_store_explicit(&row->connections, e->n_conns, memory_order_relaxed);
    atomic_store_explicit(&row->idle, e->n_idle, memory_order_relaxed);
    atomic_store_explicit(&row->spooled, sr_spools_bytes(), memory_order_relaxed);
    if (atomic_load_explicit(&row->state, memory_order_relaxed) != state) {
        atomic_store_explicit(&row->since, e->now, memory_order_relaxed);
        atomic_store_explicit(&row->state, state, memory_order_relaxed);
    }
}

/*
 * An application that has taken over a plain connection has the socket, and the end of this process means
 * nothing to it. So it must not hold up the end where it has one end of a pair; but what it has written before is
 * sent.
 */
static bool only_tunnels(sr_engine *e)
{
    if (e->n_conns > e->n_tunnels) {
        e->tunnels_until = 0;
        return false;
    }
    if (!e->tunnels_until)
        e->tunnels_until = e->now + SR_SECOND;
    if (e->now >= e->tunnels_until)
        return true;
    for (sr_link *l = e->all.next; l != &e->all; l = l->next)
        if (sr_relay_busy(SR_LIST_ENTRY(l, sr_conn, all)))
            return false;
    return true;
}

/*
 * A client that was active within the last second may be about to send. It gets one more response, with
 * "Connection: close", instead of a closed connection.
 */
bool sr_engine_drain_step(sr_engine *e)
{
    sr_engine_listeners(e, false);
    sr_deadline_shorten(e, SR_DEADLINE_LINGER, SR_SECOND);
    sr_deadline_shorten(e, SR_DEADLINE_IDLE, SR_SECOND);
    sr_deadline_shorten(e, SR_DEADLINE_HEAD, SR_SECOND);
    sr_deadline_shorten(e, SR_DEADLINE_HANDSHAKE, SR_SECOND);
    sr_expire(e);
    return !e->n_conns || only_tunnels(e);
}

/* Whether the whole server is about to stop. */
static bool leaves(const sr_engine *e)
{
    return e->scoreboard && atomic_load_explicit(&e->scoreboard->shared->stopping, memory_order_relaxed);
}

bool sr_engine_keeps(const sr_engine *e, const sr_conn *c)
{
    const sr_config *config = &e->config;
    bool stays =
        !e->draining && !e->leaving && !(e->retiring && !sr_transport_moves(c->transport)) && !leaves(e);
    stays = stays && !(e->apart && !sr_buffer_len(&c->in));
    return c->keep_alive && config->keepalive && !c->borrowed && stays &&
           (!config->max_keepalive_reqs || c->requests < config->max_keepalive_reqs);
}
