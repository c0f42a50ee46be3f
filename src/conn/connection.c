#include "connection.h"

#include "../net/descriptors.h"
#include "account.h"
#include "deadline.h"
#include "engine.h"
#include "protocol.h"
#include "pump.h"
#include "trouble.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

sr_conn *sr_conn_new(int fd, const sr_peer *peer, uint8_t listener)
{
    sr_conn *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->source = (sr_source){.fd = fd, .kind = SR_SOURCE_CONN};
    c->state = SR_CONN_IDLE;
    c->listener = listener;
    c->peer = *peer;
    sr_link_init(&c->deadline.link);
    sr_link_init(&c->all);
    sr_link_init(&c->buffered);
    sr_link_init(&c->due);
    return c;
}

void sr_conn_free(sr_conn *c)
{
    sr_transport_free(c->transport);
    if (c->source.fd >= 0 && c->borrowed)
        sr_descriptors_discard(c->source.fd);
    else if (c->source.fd >= 0)
        close(c->source.fd);
    sr_buffer_free(&c->in);
    sr_output_free(c->out);
    sr_turn_drop(c->turn);
    free(c);
}

void sr_conn_used(sr_conn *c, size_t used)
{
    if (used)
        sr_buffer_take(&c->in, used);
    if (c->in.data && !sr_buffer_len(&c->in))
        sr_buffer_free(&c->in);
}

/* --- in the engine --- */

/* EPOLLET is the highest bit. */
static uint16_t interest_in(uint32_t events)
{
    return (uint16_t)(events | (events & EPOLLET ? 1U << 15 : 0));
}

bool sr_conn_watch(sr_engine *e, sr_conn *c, uint32_t events)
{
    events = sr_transport_events(c->transport, events);
    if (c->registered && c->interest == interest_in(events))
        return true;
    int err = c->registered ? sr_loop_change(&e->loop, &c->source, events)
                            : sr_loop_add(&e->loop, &c->source, events);
    if (err) { /* ENOSPC (max_user_watches) or ENOMEM: it could never be served again */
        sr_trouble_lost(e, err == ENOSPC ? ENOMEM : err);
        if (c->state != SR_CONN_SERVING)
            sr_conn_close(e, c, SR_CLOSED_ERROR);
        return false;
    }
    c->registered = true;
    c->interest = interest_in(events);
    return true;
}

void sr_conn_unwatch(sr_engine *e, sr_conn *c)
{
    if (c->registered)
        sr_loop_remove(&e->loop, &c->source);
    c->registered = false;
}

void sr_conn_enter(sr_engine *e, sr_conn *c)
{
    c->protocol = e->protocol;
    sr_link_append(&e->all, &c->all);
    e->n_conns++;
    e->capacity.high += c->source.fd >= e->capacity.scarce;
}

static void session_over(sr_conn *c)
{
    if (c->session)
        c->protocol->over(c);
}

void sr_conn_forget(sr_engine *e, sr_conn *c)
{
    session_over(c);
    for (sr_exchange *x = c->exchange; x; x = x->older)
        sr_exchange_abandon(e, x);
    sr_deadline_clear(e, c);
    e->handshakes.n -= c->state == SR_CONN_HANDSHAKE;
    e->n_tunnels -= c->state == SR_CONN_TUNNEL;
    sr_pump_free(e, c->pump);
    sr_link_remove(&c->buffered);
    sr_link_remove(&c->due);
    sr_link_remove(&c->all);
    e->n_conns--;
    e->capacity.high -= c->source.fd >= e->capacity.scarce;
    if (e->intake.fresh_of == c)
        e->intake.fresh_of = NULL;
    if (e->joined.of == c)
        sr_joined_forget(&e->joined);
    if (c->out)
        e->pending -= sr_output_memory(c->out);
    while (c->exchange)
        sr_exchange_end(e, c->exchange);
    sr_conn_free(c);
}

static void linger(sr_conn *c, bool resets)
{
    c->resets = setsockopt(c->source.fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = resets},
                           sizeof(struct linger)) == 0 &&
                resets;
}

void sr_conn_resets(sr_conn *c)
{
    linger(c, true);
}

void sr_conn_release(sr_conn *c)
{
    char byte;
    if (c->resets)
        linger(c, false);
    while (c->held && recv(c->source.fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EINTR)
        ;
    c->held = false;
}

/*
 * Closes the connection by a reset, though the descriptor stays open. Has no effect on a unix socket, where
 * the byte that is held does it.
 */
static void reset(const sr_conn *c)
{
    struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
    /* no longer address, which the sandbox of the edge would refuse */
    int failed = connect(c->source.fd, &nowhere, sizeof nowhere.sa_family);
    (void)failed;
}

void sr_conn_close(sr_engine *e, sr_conn *c, sr_closed why)
{
    session_over(c);
    for (sr_exchange *x = c->exchange; x; x = x->older)
        sr_exchange_abandon(e, x); /* the owner of its request may supply values for the log line */
    /*
     * without a reset, what was sent of a response, or what the application has written to psgix.io, could
     * look complete
     */
    const sr_exchange *x = c->exchange;
    if (x && x->owed && x->cut_by_reset)
        reset(c);
    else if (c->transport && !c->ended)
        c->transport->ops->end(c->transport, c->source.fd); /* as far as the socket takes it */
    for (sr_exchange *o = c->exchange; o; o = o->older)
        sr_account_over(e, o, SR_OVER_ABORTED);
    sr_counters_add(&e->row->counters.closed[why], 1);
    sr_conn_unwatch(e, c); /* explicitly: another descriptor of the same open file would keep it in epoll */
    /* the application or a child of it may hold a descriptor */
    if (c->borrowed && why != SR_CLOSED_APPLICATION)
        shutdown(c->source.fd, SHUT_RDWR);
    sr_conn_forget(e, c);
}
