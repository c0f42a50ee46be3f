#include "finish.h"

#include "../http1/write.h"
#include "account.h"
#include "deadline.h"
#include "hsts.h"
#include "pump.h"
#include "relay.h"
#include "send.h"
#include "trouble.h"

#include <errno.h>
#include <sys/socket.h>

enum { LINGER_READS = 4 };

/* Sends close_notify if the socket accepts it, then shuts down the sending side. False: the connection is closed. */
static bool end_of_side(sr_engine *e, sr_conn *c)
{
    int err = c->ended ? 0 : sr_transport_end(c->transport, c->source.fd);
    c->ended = !err;
    if (err && err != EAGAIN)
        sr_conn_close(e, c, c->why);
    return !err || err == EAGAIN;
}

void sr_finish_lingering(sr_engine *e, sr_conn *c)
{
    if (!end_of_side(e, c))
        return;
    for (int i = 0; i < LINGER_READS; i++) { /* past the transport: nobody reads what it would decrypt */
        ssize_t n = recv(c->source.fd, e->intake.scratch, SR_SCRATCH, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n <= 0) {
            sr_conn_close(e, c, c->why);
            return;
        }
    }
    sr_conn_watch(e, c, EPOLLIN);
}

void sr_finish_close(sr_engine *e, sr_conn *c, sr_closed why)
{
    c->why = why;
    sr_link_remove(&c->buffered);
    sr_conn_used(c, sr_buffer_len(&c->in));
    sr_exchange_end(e, c);
    if (!end_of_side(e, c))
        return;
    c->state = SR_CONN_LINGER;
    c->unacknowledged = sr_send_unacknowledged(c);
    sr_deadline_set(e, c, SR_DEADLINE_LINGER);
    sr_finish_lingering(e, c);
}

/*
 * A client that has asked for the close should send nothing any more. But its TLS may say close_notify, and some clients
 * send an empty line behind a body (RFC 9112 2.2). Both would make of the close a reset, and what the client has not
 * received by then would be lost, with all of a response that waits for the close to be sent (MSG_MORE). So a response
 * is sent first, and then we look.
 */
static bool says_more(sr_engine *e, sr_conn *c)
{
    if (c->transport)
        return sr_send_unacknowledged(c);
    c->ended = shutdown(c->source.fd, SHUT_WR) == 0;
    return recv(c->source.fd, e->intake.scratch, SR_SCRATCH, MSG_DONTWAIT) > 0;
}

/* The whole response was sent: closes or keeps the connection. */
static void response_over(sr_engine *e, sr_conn *c)
{
    sr_exchange *x = c->exchange;
    sr_account_over(e, x, x->broken ? SR_OVER_ABORTED : SR_OVER_WHOLE);
    if (c->resets || (c->held && (c->close_after || !sr_buffer_len(&c->in))))
        sr_conn_release(c);
    if (c->close_after) {
        /*
         * the client does not expect the close; a request sent meanwhile would cause a reset (RFC 9112 9.6)
         */
        if (!x->wants_close || c->linger || sr_buffer_len(&c->in) || x->body || says_more(e, c))
            sr_finish_close(e, c, c->why);
        else
            sr_conn_close(e, c, c->why);
        return;
    }
    c->state = SR_CONN_IDLE;
    sr_exchange_end(e, c);
    if (sr_buffer_len(&c->in)) { /* its next request may be complete: no time limit before it was parsed */
        sr_deadline_clear(e, c);
        sr_link_append(&e->intake.buffered, &c->buffered);
        return;
    }
    sr_deadline_set(e, c, SR_DEADLINE_IDLE);
    if (sr_conn_watch(e, c, EPOLLIN) && sr_transport_holds(c->transport))
        sr_link_append(&e->intake.buffered, &c->buffered);
}

/* The response is sent, or is none. What else the application has written to psgix.io goes behind it. */
static sr_flush flush_all(sr_engine *e, sr_conn *c)
{
    sr_flush r = sr_send_flush(e, c);
    if (r != SR_FLUSH_DONE || !c->pump)
        return r;
    sr_relay_drain(e, c);
    sr_pump_free(e, c);
    return c->gone ? SR_FLUSH_GONE : sr_send_flush(e, c);
}

void sr_finish_writable(sr_engine *e, sr_conn *c)
{
    uint64_t before = c->exchange->sent;
    switch (flush_all(e, c)) {
    case SR_FLUSH_DONE:
        response_over(e, c);
        return;
    case SR_FLUSH_AGAIN:
        if (c->exchange->sent != before || sr_deadline_none(c))
            sr_send_stall_watch(e, c);
        sr_conn_watch(e, c, EPOLLOUT);
        return;
    case SR_FLUSH_SHORT:
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return;
    case SR_FLUSH_GONE:
        sr_conn_close(e, c, SR_CLOSED_CLIENT);
        return;
    }
}

bool sr_finish_pending(sr_engine *e, sr_conn *c)
{
    uint64_t before = c->exchange->sent;
    sr_flush r = sr_send_flush(e, c);
    switch (r) {
    case SR_FLUSH_DONE:
        sr_deadline_clear(e, c);
        if (c->pump) /* has waited for this */
            return sr_conn_watch(e, c, EPOLLIN | EPOLLOUT);
        sr_conn_unwatch(e, c);
        return true;
    case SR_FLUSH_AGAIN:
        if (c->exchange->sent != before || sr_deadline_none(c))
            sr_send_stall_watch(e, c);
        return sr_conn_watch(e, c, EPOLLOUT);
    case SR_FLUSH_SHORT:
    case SR_FLUSH_GONE:
        break;
    }
    sr_conn_close(e, c, r == SR_FLUSH_SHORT ? SR_CLOSED_ERROR : SR_CLOSED_CLIENT);
    return false;
}

/* Sends what is pending, then closes or keeps the connection. */
static void end(sr_engine *e, sr_conn *c, bool close_after)
{
    sr_deadline_clear(e, c);
    if (c->pump) /* the application has answered, and the connection ends with its response */
        sr_pump_still(e, c);
    c->state = SR_CONN_FLUSH;
    c->close_after = close_after;
    sr_finish_writable(e, c);
}

void sr_finish_refuse(sr_engine *e, sr_conn *c, int status, sr_refusal why, bool is_head)
{
    sr_finish_refuse_by(e, c, status, why, is_head, NULL);
}

void sr_finish_refuse_by(sr_engine *e, sr_conn *c, int status, sr_refusal why, bool is_head, const char *rule)
{
    sr_buffer out;
    sr_buffer_init(&out);
    sr_conn_leave(e, c);
    c->linger = true;
    c->gone = false;
    sr_link_remove(&c->buffered);
    sr_exchange *x = sr_exchange_begin_refused(e, c);
    if (x)
        sr_trouble_refused(e, x, why);
    if (!x || !sr_write_refusal(&out, status, is_head, e->date, e->config.server, sr_hsts_of(e, c))) {
        sr_buffer_free(&out);
        sr_trouble_lost(e, ENOMEM);
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return;
    }
    struct iovec iov = {sr_buffer_at(&out), sr_buffer_len(&out)};
    sr_account_refuse(x, status, why, sr_bytes_of(iov.iov_base, iov.iov_len));
    if (e->log)
        sr_accesslog_refuse(e, x, sr_bytes_of(iov.iov_base, iov.iov_len), rule);
    sr_conn_used(c, sr_buffer_len(&c->in));
    sr_exchange_drop_request(x);
    sr_send(e, c, &iov, 1);
    sr_buffer_free(&out);
    if (c->gone)
        sr_conn_close(e, c, c->why);
    else
        end(e, c, true);
}

void sr_finish(sr_engine *e, sr_exchange *x)
{
    sr_conn *c = x->conn;
    x->back_at = e->now;
    if (c->gone)
        sr_conn_close(e, c, c->why);
    else
        end(e, c, !x->keep_alive);
    sr_accesslog_keep(e, x);
}

void sr_finish_cut(sr_engine *e, sr_exchange *x)
{
    sr_conn *c = x->conn;
    x->back_at = e->now;
    x->broken = true;
    if (!c->gone)
        c->why = SR_CLOSED_ERROR;
    if (c->gone || x->version == SR_HTTP_1_0 ||
        (c->borrowed && !x->status)) /* this close resets the connection, see sr_conn_close */
        sr_conn_close(e, c, c->why);
    else
        end(e, c, true);
    sr_accesslog_keep(e, x);
}

void sr_finish_detach(sr_engine *e, sr_exchange *x)
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
