#include "relay.h"

#include "account.h"
#include "deadline.h"
#include "pump.h"
#include "send.h"

#include <errno.h>
#include <sys/socket.h>

enum { DRAIN_TURNS = 64 }; /* 1 MiB: more than a socket of the pair holds */

/* From the client to the application. 0 or EAGAIN; otherwise it can't go on. */
static int pump_up(sr_engine *e, sr_conn *c)
{
    sr_pump *p = c->pump;
    size_t pushed;
    int err = 0;
    for (int turns = 0; turns < 4 && !err && !p->up_over; turns++) {
        if (sr_buffer_len(&p->up)) {
            err = sr_pump_push(p, &pushed);
            continue;
        }
        sr_buffer_free(&p->up);
        ssize_t n = sr_transport_read(c->transport, c->source.fd, e->intake.scratch, SR_PUMP_BYTES);
        err = sr_pump_result(n);
        if (n > 0 && !sr_buffer_add(&p->up, e->intake.scratch, (size_t)n))
            err = ENOMEM;
        if (n == 0) {
            p->up_over = true;
            shutdown(p->source.fd, SHUT_WR);
        }
    }
    return err;
}

/*
 * Whether the end waits: a worker still has the request, and may answer it, as one that only looked at the
 * socket does.
 */
static bool held(const sr_conn *c)
{
    return sr_conn_slot(c) && sr_pump_closed(c->pump);
}

/*
 * What waits in the output. EAGAIN: the client does not read, or it is of a response, which deliver.c sends.
 */
static int flush(sr_engine *e, sr_conn *c)
{
    if (sr_conn_slot(c) && c->exchange->status)
        return EAGAIN;
    switch (sr_send_flush(e, c)) {
    case SR_FLUSH_DONE:
        return 0;
    case SR_FLUSH_AGAIN:
        return EAGAIN;
    case SR_FLUSH_SHORT:
    case SR_FLUSH_GONE:
        break;
    }
    return EPIPE;
}

/* From the application to the client, once. It is no part of a response, and not counted as one. */
static int take(sr_engine *e, sr_conn *c)
{
    sr_pump *p = c->pump;
    uint64_t before = c->sent;
    ssize_t n;
    int err = sr_pump_take(p, e->intake.scratch, &n);
    if (n > 0)
        sr_send(e, c, &(struct iovec){e->intake.scratch, (size_t)n}, 1);
    c->exchange->sent_from += c->sent - before;
    if (n > 0)
        c->exchange->active_at = e->now;
    return c->gone ? EPIPE : err;
}

static int pump_down(sr_engine *e, sr_conn *c)
{
    sr_pump *p = c->pump;
    int err = 0;
    for (int turns = 0; turns < 4 && !err && !p->down_over; turns++) {
        if (c->out) {
            err = flush(e, c);
        } else if (p->down_ends) {
            if (held(c))
                break;
            err = sr_transport_end(c->transport, c->source.fd);
            p->down_over = !err;
        } else {
            err = take(e, c);
        }
    }
    return err;
}

void sr_relay_drain(sr_engine *e, sr_conn *c)
{
    /* a file of the application, behind which nothing can be kept */
    if (c->out && c->out->fd >= 0 && (!c->out->spool || c->out->next >= 0))
        return;
    for (int turns = 0; turns < DRAIN_TURNS && !c->pump->down_ends && !take(e, c); turns++)
        ;
}

/* Ends it, at once or, if a worker still has its request, when that says what became of it. */
static void over(sr_engine *e, sr_conn *c, sr_closed why)
{
    if (!sr_conn_slot(c)) {
        sr_conn_close(e, c, why);
        return;
    }
    c->gone = true;
    c->why = why;
    sr_pump_watch(e, c->pump, 0);
    shutdown(c->pump->source.fd, SHUT_RDWR); /* or it would wait for the client for ever */
    sr_conn_unwatch(e, c);
}

void sr_relay_step(sr_engine *e, sr_conn *c)
{
    sr_pump *p = c->pump;
    uint32_t of_client = 0, of_pair = 0;
    int up = pump_up(e, c), down = pump_down(e, c);
    if ((up && up != EAGAIN) || (down && down != EAGAIN) ||
        (p->down_over && (p->up_over || sr_pump_closed(p)))) {
        over(e, c, SR_CLOSED_APPLICATION);
        return;
    }
    if (sr_buffer_len(&p->up))
        of_pair |= EPOLLOUT;
    else if (!p->up_over && !sr_pump_closed(p))
        of_client |= EPOLLIN;
    if (c->out || (p->down_ends && !p->down_over && !held(c)))
        of_client |= EPOLLOUT;
    else if (!p->down_ends)
        of_pair |= EPOLLIN;
    if (!of_client)
        sr_conn_unwatch(e, c);
    if (!sr_pump_watch(e, p, of_pair)) { /* ENOMEM: what the application writes would never be noticed */
        over(e, c, SR_CLOSED_ERROR);
        return;
    }
    if (of_client && sr_conn_watch(e, c, of_client) &&
        (sr_transport_holds(c->transport) && of_client & EPOLLIN))
        sr_link_append(&e->intake.buffered, &c->buffered);
}

bool sr_relay_busy(const sr_conn *c)
{
    char byte;
    const sr_pump *p = c->pump;
    return c->out || (c->transport && c->transport->ops->unsent(c->transport)) ||
           (p && !p->down_ends && recv(p->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0);
}

void sr_relay_detach(sr_engine *e, sr_exchange *x)
{
    sr_conn *c = x->conn;
    x->back_at = e->now;
    sr_account_over(e, x, SR_OVER_TAKEN);
    if (c->pump && !c->gone) {
        sr_deadline_clear(e, c);
        c->state = SR_CONN_TUNNEL;
        e->n_tunnels++;
        sr_relay_step(e, c);
        return;
    }
    sr_conn_unwatch(e, c);
    sr_conn_close(e, c, SR_CLOSED_APPLICATION);
}
