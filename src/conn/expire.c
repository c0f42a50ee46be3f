#include "expire.h"

#include "account.h"
#include "deadline.h"
#include "linger.h"
#include "protocol.h"
#include "send.h"
#include "trouble.h"

#include <sys/socket.h>

/* Of a kind. To close a connection takes 10 to 30 us, and thousands may be due at the same time. */
enum { EXPIRED_PER_STEP = 16 };

#define LATE_NS (100 * SR_MILLISECOND)
#define STOOD_STILL_NS SR_SECOND

/*
 * If a limit is noticed that late, this process was stopped (SIGSTOP, a suspended machine). That is not the
 * client's fault, whose bytes may be waiting. A limit that had already expired at the last check was merely
 * delayed.
 */
static bool late(const sr_engine *e, int64_t at, int64_t by)
{
    int64_t since = at > e->looked_at ? at : e->looked_at;
    return e->now - since > by;
}

/*
 * The kernel may hold megabytes for a slow client, which must not be lost while the client goes on reading.
 */
static void linger_over(sr_engine *e, sr_conn *c)
{
    int left = sr_send_unacknowledged(c);
    if (!left || left >= c->unacknowledged) {
        sr_conn_close(e, c, c->why);
        return;
    }
    c->unacknowledged = left;
    sr_deadline_set(e, c, SR_DEADLINE_LINGER);
}

/* A client that waits for the copy of a file (leased.h) is not slow. */
static void stalled(sr_engine *e, sr_conn *c, int64_t at)
{
    if (late(e, at, LATE_NS) || (c->out && c->out->stalled) || sr_send_unacknowledged(c) < c->unacknowledged)
        sr_send_stall_watch(e, c);
    else
        sr_conn_close(e, c, SR_CLOSED_WRITE);
}

/* The reason to count: during a stop, the limits are shorter and a close is part of the stop. */
static sr_closed idle_why(const sr_engine *e, sr_closed why)
{
    return e->draining ? SR_CLOSED_STOP : why;
}

/* Whether something has come that was not read yet: perhaps a request, which must not be lost. */
static bool has_more(const sr_conn *c)
{
    char byte;
    return recv(c->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Whether it was silent for --header-timeout, and is no longer. */
static bool begins(const sr_conn *c)
{
    bool silent =
        c->state == SR_CONN_IDLE || (c->state == SR_CONN_STREAMS && !c->requests && !sr_buffer_len(&c->in));
    return silent && has_more(c);
}

static void idle_over(sr_engine *e, sr_conn *c)
{
    if (has_more(c)) {
        sr_deadline_set(e, c, SR_DEADLINE_HEAD);
        sr_conn_watch(e, c, EPOLLIN);
    } else {
        sr_linger(e, c, idle_why(e, SR_CLOSED_IDLE));
    }
}

static void late_handshake(sr_engine *e, sr_conn *c)
{
    sr_closed why = idle_why(e, SR_CLOSED_HANDSHAKE);
    if (why == SR_CLOSED_HANDSHAKE)
        sr_trouble_handshake(e, c, SR_FAILURE_TIMEOUT, "it took too long (--tls-handshake-timeout)");
    sr_conn_close(e, c, why);
}

static void slow_body(sr_engine *e, sr_exchange *x, int64_t at)
{
    bool stood_still = late(e, at, STOOD_STILL_NS);
    sr_body *body = x->body;
    uint64_t got = body->received - body->counted;
    body->counted = body->received;
    if (stood_still ||
        (double)got * (double)SR_SECOND >= (double)e->config.body_rate * (double)e->config.body_ns)
        sr_deadline_set_exchange(e, x, SR_DEADLINE_BODY);
    else
        sr_exchange_refuse(e, x, 408, SR_REFUSED_BODY_TIMEOUT);
}

/* The connection goes on, and a worker that waits for this client is free. */
static void stream_stalled(sr_engine *e, sr_exchange *x, int64_t at)
{
    if (late(e, at, LATE_NS)) {
        sr_deadline_set_exchange(e, x, SR_DEADLINE_STALL);
        return;
    }
    sr_counters_add(&e->row->counters.limited[SR_LIMIT_WRITE], 1);
    x->protocol->cut(e, x);
}

static void expire_exchange(sr_engine *e, sr_exchange *x, sr_deadline_kind kind, int64_t at)
{
    sr_deadline_clear_exchange(e, x);
    if (kind == SR_DEADLINE_BODY)
        slow_body(e, x, at);
    else if (kind == SR_DEADLINE_STALL)
        stream_stalled(e, x, at);
    else if (!x->slot || !e->expired || !e->expired(e->with, x, kind))
        sr_exchange_refuse(e, x, e->deadlines.waited_too_long, sr_account_waited(e));
}

static void expire_conn(sr_engine *e, sr_conn *c, sr_deadline_kind kind, int64_t at)
{
    sr_deadline_clear(e, c);
    switch (kind) {
    case SR_DEADLINE_HEAD:
        if (late(e, at, STOOD_STILL_NS) || begins(c))
            sr_deadline_set(e, c, kind);
        else if (c->state == SR_CONN_STREAMS)
            sr_conn_close(e, c, SR_CLOSED_HEAD);
        else if (c->state == SR_CONN_IDLE) /* no byte of a request has come, so there is nothing to answer */
            sr_linger(e, c, idle_why(e, SR_CLOSED_HEAD));
        else
            sr_conn_refuse(e, c, 408, SR_REFUSED_HEADER_TIMEOUT);
        break;
    case SR_DEADLINE_IDLE:
        if (c->state == SR_CONN_STREAMS) {
            c->why = idle_why(e, SR_CLOSED_IDLE);
            c->protocol->drain(e, c);
        } else {
            idle_over(e, c);
        }
        break;
    case SR_DEADLINE_WRITE:
        stalled(e, c, at);
        break;
    case SR_DEADLINE_HANDSHAKE:
        if (late(e, at, STOOD_STILL_NS))
            sr_deadline_set(e, c, kind);
        else
            late_handshake(e, c);
        break;
    case SR_DEADLINE_GOAWAY:
        c->protocol->drain(e, c);
        break;
    case SR_DEADLINE_LINGER:
        linger_over(e, c);
        break;
    case SR_DEADLINE_BODY:
    case SR_DEADLINE_QUEUE:
    case SR_DEADLINE_LOOK:
    case SR_DEADLINE_CALL:
    case SR_DEADLINE_STREAM:
    case SR_DEADLINE_STALL: /* of exchanges */
    case SR_DEADLINE_KINDS:
        break;
    }
}

void sr_expire_due(sr_engine *e)
{
    uint32_t kinds = e->deadlines.running;
    for (int kind; (kind = sr_deadline_kind_next(&e->deadlines, &kinds)) >= 0;)
        for (int n = 0; n < EXPIRED_PER_STEP && !sr_link_alone(&e->deadlines.list[kind]); n++) {
            int64_t at = sr_deadline_next(&e->deadlines, kind);
            if (at > e->now)
                break;
            if (sr_deadline_of_connection(kind))
                expire_conn(e, sr_deadline_head(&e->deadlines, kind), kind, at);
            else
                expire_exchange(e, sr_deadline_exchange(e->deadlines.list[kind].next), kind, at);
        }
}
