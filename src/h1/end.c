#include "end.h"

#include "../conn/account.h"
#include "../conn/deadline.h"
#include "../conn/linger.h"
#include "../conn/pump.h"
#include "../conn/relay.h"
#include "../conn/send.h"

#include <sys/socket.h>

/*
 * A client that has asked for the close should send nothing any more. But its TLS may say close_notify, and
 * some clients send an empty line behind a body (RFC 9112 2.2). Both would make of the close a reset, and
 * what the client has not received by then would be lost, with all of a response that waits for the close to
 * be sent (MSG_MORE). So a response is sent first, and then we look.
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
            sr_linger(e, c, c->why);
        else
            sr_conn_close(e, c, c->why);
        return;
    }
    c->state = SR_CONN_IDLE;
    sr_exchange_end(e, x);
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
    sr_pump_free(e, c->pump);
    c->pump = NULL;
    return c->gone ? SR_FLUSH_GONE : sr_send_flush(e, c);
}

/* The socket is full; it had accepted `before` bytes. False: the connection is closed. */
static bool wait_for_client(sr_engine *e, sr_conn *c, uint64_t before)
{
    if (c->sent != before || sr_deadline_none(c))
        sr_send_stall_watch(e, c);
    return sr_conn_watch(e, c, c->state == SR_CONN_HELD ? EPOLLOUT | EPOLLRDHUP : EPOLLOUT);
}

/* In FLUSH: sends what is left of the response, and ends it. */
static void send_rest(sr_engine *e, sr_conn *c)
{
    uint64_t before = c->sent;
    switch (flush_all(e, c)) {
    case SR_FLUSH_DONE:
        response_over(e, c);
        return;
    case SR_FLUSH_AGAIN:
        wait_for_client(e, c, before);
        return;
    case SR_FLUSH_SHORT:
        c->exchange->broken = true;
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return;
    case SR_FLUSH_GONE:
        sr_conn_close(e, c, SR_CLOSED_CLIENT);
        return;
    }
}

/* In SERVING: sends what is pending of a response of which more will follow. */
static bool send_pending(sr_engine *e, sr_conn *c)
{
    uint64_t before = c->sent;
    sr_flush r = sr_send_flush(e, c);
    switch (r) {
    case SR_FLUSH_DONE:
        sr_deadline_clear(e, c);
        if (c->pump) /* has waited for this */
            return sr_conn_watch(e, c, EPOLLIN | EPOLLOUT);
        if (c->state == SR_CONN_HELD) /* its end is all that is of interest */
            return sr_conn_watch(e, c, EPOLLRDHUP);
        sr_conn_unwatch(e, c);
        return true;
    case SR_FLUSH_AGAIN:
        return wait_for_client(e, c, before);
    case SR_FLUSH_SHORT:
    case SR_FLUSH_GONE:
        break;
    }
    if (r == SR_FLUSH_SHORT)
        c->exchange->broken = true;
    sr_conn_close(e, c, r == SR_FLUSH_SHORT ? SR_CLOSED_ERROR : SR_CLOSED_CLIENT);
    return false;
}

bool sr_h1_writable(sr_engine *e, sr_conn *c)
{
    if (c->state == SR_CONN_SERVING || c->state == SR_CONN_HELD)
        return send_pending(e, c);
    send_rest(e, c);
    return false;
}

sr_output *sr_h1_output(const sr_exchange *x)
{
    return x->conn->out;
}

bool sr_h1_settle(sr_engine *e, sr_exchange *x)
{
    return send_pending(e, x->conn);
}

void sr_h1_finish(sr_engine *e, sr_conn *c, bool close_after)
{
    sr_deadline_clear(e, c);
    if (c->pump) /* the application has answered, and the connection ends with its response */
        sr_pump_still(e, c->pump);
    c->state = SR_CONN_FLUSH;
    c->close_after = close_after;
    send_rest(e, c);
}

void sr_h1_end(sr_engine *e, sr_exchange *x)
{
    sr_conn *c = x->conn;
    x->back_at = e->now;
    if (x->left &&
        x->left != SR_LENGTH_UNKNOWN) { /* shorter than its Content-Length: only a close can tell */
        x->keep_alive = false;
        x->broken = true;
    }
    if (c->gone)
        sr_conn_close(e, c, c->why);
    else
        sr_h1_finish(e, c, !x->keep_alive);
    sr_accesslog_keep(e, x);
}

void sr_h1_cut(sr_engine *e, sr_exchange *x)
{
    sr_conn *c = x->conn;
    x->back_at = e->now;
    x->broken = true;
    if (!c->gone)
        c->why = SR_CLOSED_ERROR;
    if (c->borrowed && !x->status)
        x->cut_by_reset = true;
    if (c->gone || x->cut_by_reset || x->version == SR_HTTP_1_0)
        sr_conn_close(e, c, c->why);
    else
        sr_h1_finish(e, c, true);
    sr_accesslog_keep(e, x);
}
