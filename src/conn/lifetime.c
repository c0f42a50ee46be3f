#include "lifetime.h"

#include "../base/random.h"
#include "capacity.h"
#include "deadline.h"
#include "expire.h"
#include "listener.h"
#include "parting.h"
#include "protocol.h"
#include "relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sr_engine_new(sr_engine **out, const sr_config *config, int lifeline)
{
    sr_engine *e = aligned_alloc(_Alignof(sr_engine), sizeof *e); /* malloc aligns to 16 bytes, or to 8 */
    char *scratch = malloc(SR_SCRATCH);
    if (e)
        memset(e, 0, sizeof *e);
    int err = e && scratch ? sr_exchanges_init(&e->exchanges) : ENOMEM;
    if (!err && (err = sr_loop_init(&e->loop)))
        sr_exchanges_free(&e->exchanges);
    if (err) {
        free(e);
        free(scratch);
        return err;
    }
    e->intake.scratch = scratch;
    e->config = *config;
    sr_link_init(&e->all);
    sr_link_init(&e->due);
    sr_link_init(&e->holding);
    sr_leased_init(&e->leased);
    sr_link_init(&e->partings);
    sr_link_init(&e->intake.buffered);
    sr_link_init(&e->handshakes.ready);
    sr_link_init(&e->handshakes.endings);
    sr_deadlines_init(&e->deadlines, config);
    e->row = &e->no_row;
    sr_capacity_init(e);
    e->lifeline = (sr_source){.fd = lifeline, .kind = SR_SOURCE_LIFELINE};
    if (lifeline >= 0 && (err = sr_loop_add(&e->loop, &e->lifeline, EPOLLIN))) {
        sr_engine_free(e);
        return err;
    }
    sr_engine_tick(e);
    if (!sr_random_now(&e->nonce, sizeof e->nonce))
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
    sr_partings_free(e);
    sr_leased_free(&e->leased);
    sr_loop_free(&e->loop);
    sr_accesslog_end(e);
    sr_exchanges_free(&e->exchanges);
    sr_tls_free(e->tls);
    sr_buffer_free(&e->joined.bytes);
    sr_buffer_free(&e->lines);
    sr_buffer_free(&e->intake.head);
    free(e->intake.scratch);
    free(e);
}

/* Whether no worker has a request of it, and applications have taken all that it carries. */
static bool is_tunnel(const sr_conn *c)
{
    const sr_exchange *x = c->state == SR_CONN_STREAMS ? c->exchange : NULL;
    while (x && x->lent && !x->slot)
        x = x->older;
    return c->state == SR_CONN_TUNNEL || (c->state == SR_CONN_STREAMS && c->exchange && !x);
}

static bool is_busy(const sr_conn *c)
{
    for (const sr_exchange *x = c->exchange; x && c->state == SR_CONN_STREAMS; x = x->older)
        if (x->protocol->output(x))
            return true;
    return sr_relay_busy(c);
}

/*
 * A tunnel must not delay the exit of the edge. On a plain connection the application holds the socket; over
 * TLS, what it has written is sent first.
 */
static bool only_tunnels(sr_engine *e)
{
    bool only = e->n_conns <= e->n_tunnels + e->n_lent;
    for (sr_link *l = e->all.next; only && l != &e->all; l = l->next)
        only = is_tunnel(SR_LIST_ENTRY(l, sr_conn, all));
    if (!only) {
        e->tunnels_until = 0;
        return false;
    }
    if (!e->tunnels_until)
        e->tunnels_until = e->now + SR_SECOND;
    if (e->now >= e->tunnels_until)
        return true;
    if (!sr_link_alone(&e->partings))
        return false;
    for (sr_link *l = e->all.next; l != &e->all; l = l->next)
        if (is_busy(SR_LIST_ENTRY(l, sr_conn, all)))
            return false;
    return true;
}

void sr_engine_drain_streams(sr_engine *e)
{
    for (sr_link *l = e->all.next; l != &e->all; l = l->next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        if (c->state == SR_CONN_STREAMS)
            c->protocol->drain(e, c);
    }
}

/*
 * A client that was active within the last second may be about to send. It gets one more response, with
 * "Connection: close", instead of a closed connection.
 */
bool sr_engine_drain_step(sr_engine *e)
{
    sr_listeners_watch(e, false);
    sr_deadline_shorten(&e->deadlines, SR_DEADLINE_LINGER, SR_SECOND);
    sr_deadline_shorten(&e->deadlines, SR_DEADLINE_IDLE, SR_SECOND);
    sr_deadline_shorten(&e->deadlines, SR_DEADLINE_HEAD, SR_SECOND);
    sr_deadline_shorten(&e->deadlines, SR_DEADLINE_HANDSHAKE, SR_SECOND);
    sr_expire(e);
    return sr_engine_over(e) || only_tunnels(e);
}
