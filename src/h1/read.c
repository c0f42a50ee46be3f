#include "read.h"

#include "../conn/account.h"
#include "../conn/client.h"
#include "../conn/deadline.h"
#include "../conn/linger.h"
#include "../conn/proxyhead.h"
#include "../conn/slowest.h"
#include "../conn/spools.h"
#include "../conn/trouble.h"
#include "../http1/head.h"
#include "decode.h"
#include "put.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READS_PER_EVENT = 4, /* 512 KiB of a body; then others have their turn */
    DEAR = 16 * 1024, /* bytes of a body in tiny chunks, of which each byte takes as long as fifty others */
};

/* OVER: the request was refused, or the connection closed and freed; CHANGED: it has another protocol */
typedef enum { TAKE_MORE, TAKE_READY, TAKE_CHANGED, TAKE_OVER } take;

static take refuse(sr_engine *e, sr_conn *c, int status)
{
    sr_refusal why = sr_account_fault(status);
    if (status == 503) { /* 503 is used here for lack of memory or descriptors only */
        const sr_body *body = c->exchange ? c->exchange->body : NULL;
        int err = body && body->err ? body->err : ENOMEM;
        sr_trouble_count(e, SR_TROUBLE_MEMORY, 1, err);
        why = sr_account_lack(err);
    }
    sr_conn_refuse(e, c, status, why);
    return TAKE_OVER;
}

/* Gives the connection its own copy of the parser, since the rest of the request will come later. */
static bool keep_parse(sr_engine *e, sr_conn *c)
{
    sr_exchange *x = sr_exchange_begin(e, c);
    if (!x || x->parse)
        return x;
    size_t used = sr_request_bytes(&e->intake.request);
    x->parse = malloc(sizeof *x->parse);
    if (x->parse)
        memcpy(x->parse, &e->intake.request, used);
    if (e->intake.request.version != SR_HTTP_1_1) { /* its version is 1.0, or not known yet: may_hold */
        c->persists = false;
        x->version = SR_HTTP_1_0;
    }
    return x->parse;
}

/*
 * No reset can be sent on a unix socket, but the peer gets ECONNRESET if a socket is closed with bytes in it
 * that nobody has read. To leave one, a read has to look first, which costs another system call. So it does
 * for the first request of a connection, for the rest of one that is not known to be of 1.1, and always once
 * a request of 1.0 has come on any unix socket: proxies may send requests of both versions on one connection.
 */
static inline bool may_hold(const sr_engine *e, const sr_conn *c)
{
    return (!c->persists || e->intake.has_held) && !c->transport && e->listeners.at[c->listener].is_unix;
}

/*
 * Whether this request of 1.0 was read with its last byte, as it is the first on any unix socket and behind
 * one of 1.1. From now on each read looks.
 */
static bool is_unheld(sr_engine *e, const sr_conn *c)
{
    if (c->transport || !e->listeners.at[c->listener].is_unix)
        return false;
    e->intake.has_held = true;
    return !e->intake.looked && !c->held;
}

/* --- a whole request --- */

static take ready(sr_engine *e, sr_conn *c, const sr_request *r, sr_bytes view, bool in_scratch,
                  sr_task *task)
{
    if (r->version == SR_HTTP_1_0 &&
        is_unheld(e,
                  c)) { /* a client has to be prepared for it, and sends the request again (RFC 9112 9.3.1) */
        sr_linger(e, c, SR_CLOSED_AFTER);
        return TAKE_OVER;
    }
    sr_exchange *x = sr_exchange_begin(e, c);
    if (!x)
        return refuse(e, c, 503);
    sr_deadline_clear(e, c);
    c->state = SR_CONN_SERVING;
    c->requests++;
    c->gone = c->borrowed = false;
    c->why = SR_CLOSED_AFTER;
    c->persists = r->version != SR_HTTP_1_0;
    x->version = r->version;
    x->is_head = r->is_head;
    x->keep_alive = r->keep_alive;
    x->wants_close = !r->keep_alive;
    x->ready_at = e->now;
    if (c->out) /* a bit is not written for nothing: that takes five instructions */
        x->interim_pending = true;
    x->owed = true;
    x->sent_from = c->sent;
    *task = (sr_task){.exchange = x, .request = r, .base = view.at, .body_fd = -1};
    if (e->config.trusted.n)
        task->forwarded = sr_client_forwarded(e, x, r, view.at);
    if (x->trusted || r->proxied)
        x->proxied = true;
    e->intake.current = c;
    e->intake.in_scratch = in_scratch;
    e->intake.view = view;
    e->intake.used = r->head_len;
    sr_body *b = x->body;
    if (b) {
        task->body_length = b->length;
        task->body = sr_bytes_of(sr_buffer_at(&b->mem), sr_buffer_len(&b->mem));
        task->body_fd = sr_body_take(b);
    } else if (r->framing == SR_BODY_LENGTH) {
        task->body = sr_bytes_of(view.at + r->head_len, (size_t)r->content_length);
        task->body_length = r->content_length;
        e->intake.used += (size_t)r->content_length;
    }
    return TAKE_READY;
}

/* --- bodies --- */

static take body_result(sr_engine *e, sr_conn *c, sr_body_result result, sr_bytes rest, sr_task *task)
{
    switch (result) {
    case SR_BODY_MORE:
        return TAKE_MORE;
    case SR_BODY_DONE:
        if (!sr_buffer_add_bytes(&c->in, rest))
            return refuse(e, c, 503);
        return ready(e, c, c->exchange->parse, sr_bytes_of(sr_buffer_at(&c->in), sr_buffer_len(&c->in)),
                     false, task);
    case SR_BODY_BAD:
        sr_spools_failed(e, c->exchange->body->err);
        break;
    }
    return refuse(e, c, c->exchange->body->status);
}

static take lacks_room(sr_engine *e, sr_conn *c)
{
    sr_trouble_count(e, SR_TROUBLE_SLOWEST, 1, 0);
    sr_conn_refuse(e, c, 507, SR_REFUSED_TEMPORARY);
    return TAKE_OVER;
}

static take take_body(sr_engine *e, sr_conn *c, sr_bytes fresh, sr_task *task)
{
    size_t used = 0;
    if (!sr_slowest_has_room(e, c, c->exchange->body, fresh.len))
        return lacks_room(e, c);
    sr_body_result result = sr_decode(c->exchange->body, &e->config, fresh, &used);
    return body_result(e, c, result, sr_bytes_of(fresh.at + used, fresh.len - used), task);
}

/* False: the connection is closed. */
static bool send_continue(sr_engine *e, sr_exchange *x)
{
    sr_conn *c = x->conn;
    sr_h1_continue(e, x);
    if (!c->gone)
        return true;
    sr_conn_close(e, c, c->why);
    return false;
}

/* The head is complete, but the body is not, or does not fit the buffer. */
static take body_begin(sr_engine *e, sr_conn *c, sr_request *r, sr_bytes view, bool in_scratch, sr_task *task)
{
    sr_bytes rest = sr_bytes_of(view.at + r->head_len, view.len - r->head_len);
    sr_exchange *x = sr_exchange_begin(e, c);
    if (!x)
        return refuse(e, c, 503);
    if (r->expect == SR_EXPECT_CONTINUE && !rest.len && !send_continue(e, x))
        return TAKE_OVER;
    if ((x->body = sr_decode_new(r)))
        x->body->pace = sr_pace_begin(e->now);
    if (!x->body || !keep_parse(e, c) || (in_scratch && !sr_buffer_add(&c->in, view.at, r->head_len)))
        return refuse(e, c, 503);
    c->state = SR_CONN_BODY;
    sr_deadline_set_exchange(e, x, SR_DEADLINE_BODY);
    if (!rest.len)
        return TAKE_MORE;
    size_t used = 0;
    if (!sr_slowest_has_room(e, c, x->body, rest.len))
        return lacks_room(e, c);
    sr_body_result result = sr_decode(c->exchange->body, &e->config, rest, &used);
    rest = sr_bytes_of(rest.at + used, rest.len - used);
    /* the bytes after the head are in c->in already: removes the body from between head and next request */
    if (!in_scratch) {
        memmove(sr_buffer_at(&c->in) + r->head_len, rest.at, rest.len);
        c->in.end = c->in.from + r->head_len + rest.len;
        rest.len = 0;
    }
    return body_result(e, c, result, rest, task);
}

static take head_done(sr_engine *e, sr_conn *c, sr_request *r, sr_bytes view, bool in_scratch, sr_task *task)
{
    if (r->framing == SR_BODY_NONE)
        return ready(e, c, r, view, in_scratch, task);
    if (r->framing == SR_BODY_LENGTH) {
        if (r->content_length > e->config.max_body)
            return refuse(e, c, 413);
        if (r->content_length <= e->config.body_memory && view.len - r->head_len >= r->content_length)
            return ready(e, c, r, view, in_scratch, task);
    }
    return body_begin(e, c, r, view, in_scratch, task);
}

/* --- heads --- */

/* Whether it is an empty line, or a part of one. */
static bool is_blank(sr_bytes view)
{
    return view.len <= 2 && memcmp(view.at, "\r\n", view.len) == 0;
}

/* Prior knowledge (RFC 9113 3.3): the connection goes on with HTTP/2, from its preface on. */
static take change(sr_engine *e, sr_conn *c, sr_bytes view, bool in_scratch)
{
    sr_exchange_end(e, c->exchange);
    if ((in_scratch && !sr_buffer_add_bytes(&c->in, view)) || !e->streams->begin(e, c)) {
        sr_trouble_lost(e, ENOMEM);
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return TAKE_OVER;
    }
    c->protocol = e->streams;
    sr_link_append(&e->intake.buffered, &c->buffered);
    return TAKE_CHANGED;
}

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { PREFACE = sizeof preface - 1 };

/* Whether it begins as the preface does, or with all of it. */
static bool is_preface(const sr_engine *e, const sr_conn *c, sr_bytes view)
{
    return !c->requests && e->listeners.at[c->listener].is_h2c &&
           memcmp(view.at, preface, view.len < PREFACE ? view.len : PREFACE) == 0;
}

/*
 * Whether what has come first is no request line, where a preface could have been: that is an invalid one
 * (RFC 9113 3.4), and its client would not understand a response.
 */
static bool is_bad_preface(const sr_engine *e, const sr_conn *c, const sr_request *r)
{
    return e->listeners.at[c->listener].is_h2c && !c->requests && r->status == 400 && !r->method.len;
}

static take take_head(sr_engine *e, sr_conn *c, sr_bytes view, bool in_scratch, sr_task *task)
{
    if (c->proxy_header) {
        sr_proxyhead header = sr_proxyhead_take(c, &view, in_scratch);
        if (header == SR_PROXYHEAD_BAD)
            sr_conn_close(e, c, SR_CLOSED_PROXY);
        if (header != SR_PROXYHEAD_DONE)
            return header == SR_PROXYHEAD_BAD ? TAKE_OVER : TAKE_MORE;
        if (in_scratch)
            e->intake.fresh = view;
    }
    bool is_h2 = is_preface(e, c, view);
    if (is_h2 && view.len >= PREFACE)
        return change(e, c, view, in_scratch);
    sr_request *r = c->exchange ? c->exchange->parse : NULL;
    if (!r) {
        r = &e->intake.request;
        sr_request_init(r);
    }
    sr_request_limits limits = sr_client_limits(e, c);
    switch (is_h2 ? SR_PARSE_MORE : sr_request_feed(r, &limits, view.at, view.len)) {
    case SR_PARSE_DONE:
        return head_done(e, c, r, view, in_scratch, task);
    case SR_PARSE_BAD:
        if (is_bad_preface(e, c, r)) {
            sr_conn_close(e, c, SR_CLOSED_REFUSED);
            return TAKE_OVER;
        }
        return refuse(e, c, r->status);
    case SR_PARSE_MORE:
        break;
    }
    if (!keep_parse(e, c) || (in_scratch && !sr_buffer_add_bytes(&c->in, view)))
        return refuse(e, c, 503);
    if (is_blank(view)) { /* an empty line behind a body (RFC 9112 2.2) begins no request */
        c->state = SR_CONN_IDLE;
        if (sr_deadline_none(c))
            sr_deadline_set(e, c, SR_DEADLINE_IDLE);
        return TAKE_MORE;
    }
    if (c->state == SR_CONN_IDLE && c->requests)
        sr_deadline_set(e, c, SR_DEADLINE_HEAD); /* for the first request, the limit has run since accept */
    c->state = SR_CONN_HEAD;
    return TAKE_MORE;
}

static take take_bytes(sr_engine *e, sr_conn *c, sr_bytes fresh, sr_task *task)
{
    if (c->state == SR_CONN_BODY)
        return take_body(e, c, fresh, task);
    if (!sr_buffer_len(&c->in))
        return take_head(e, c, fresh, true, task);
    bool kept = sr_buffer_add_bytes(&c->in, fresh);
    sr_bytes view = sr_bytes_of(sr_buffer_at(&c->in), sr_buffer_len(&c->in));
    return kept ? take_head(e, c, view, false, task) : refuse(e, c, 503);
}

/* --- readable --- */

/*
 * The client has shut down its side. In the middle of a request that is an error, but it may still read the
 * answer.
 */
static void ended(sr_engine *e, sr_conn *c)
{
    if (c->state == SR_CONN_IDLE)
        sr_conn_close(e, c, SR_CLOSED_CLIENT);
    else
        sr_conn_refuse(e, c, 400, SR_REFUSED_INCOMPLETE);
}

/*
 * Whether bytes follow the request that is ready, and so perhaps a request of 1.0 that could not be held
 * later.
 */
static bool is_followed(const sr_engine *e)
{
    return e->intake.view.len > e->intake.used;
}

/* Reads what was looked at, into its own place, all or all but a byte. */
static void consume(sr_engine *e, sr_conn *c, size_t len, bool hold)
{
    size_t got = 0;
    c->held = hold;
    while (got < len - hold) {
        ssize_t n = recv(c->source.fd, e->intake.scratch + got, len - hold - got, MSG_DONTWAIT);
        if (n <= 0 && !(n < 0 && errno == EINTR))
            return;
        got += n > 0 ? (size_t)n : 0;
    }
}

/* What to return. A connection whose request is not complete waits for more, which may be here already. */
static sr_intake outcome(sr_engine *e, sr_conn *c, take t)
{
    if (t == TAKE_MORE && c->held) /* by the request before */
        sr_conn_release(c);
    if (t == TAKE_MORE && sr_conn_watch(e, c, EPOLLIN) && sr_transport_holds(c->transport))
        sr_link_append(&e->intake.buffered, &c->buffered);
    return t == TAKE_READY ? SR_INTAKE_READY : SR_INTAKE_WAIT;
}

/* Whether its body comes in chunks so small that fewer bytes should be read at a time. */
static bool is_dear(const sr_conn *c)
{
    const sr_body *body = c->exchange ? c->exchange->body : NULL;
    return body && body->dear;
}

static sr_intake read_socket(sr_engine *e, sr_conn *c, sr_task *task)
{
    e->intake.fresh_of = c;
    for (int reads = 0;;) {
        size_t room = is_dear(c) ? DEAR : SR_SCRATCH;
        bool looks = e->intake.looked = may_hold(e, c);
        ssize_t n = looks ? recv(c->source.fd, e->intake.scratch, room, MSG_PEEK | MSG_DONTWAIT)
                          : sr_transport_read(c->transport, c->source.fd, e->intake.scratch, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n < 0) {
            sr_trouble_lost(e, errno);
            sr_conn_close(e, c, SR_CLOSED_CLIENT);
            return SR_INTAKE_WAIT;
        }
        e->intake.fresh = sr_bytes_of(e->intake.scratch, (size_t)(n > 0 ? n : 0));
        if (n == 0) {
            ended(e, c);
            return SR_INTAKE_WAIT;
        }
        take t = take_bytes(e, c, e->intake.fresh, task);
        if (looks && t != TAKE_OVER)
            consume(e, c, (size_t)n, t == TAKE_READY && (!c->persists || is_followed(e)));
        if (t != TAKE_MORE)
            return outcome(e, c, t);
        if (n < SR_SCRATCH || ++reads == READS_PER_EVENT || is_dear(c))
            break;
    }
    return outcome(e, c, TAKE_MORE);
}

/*
 * Whether the rest of what was read is no part of the request that is being parsed, so that nothing has to be
 * read first.
 */
static bool is_here(const sr_conn *c)
{
    return sr_buffer_len(&c->in) && !c->proxy_header && !(c->exchange && c->exchange->parse);
}

sr_intake sr_h1_read(sr_engine *e, sr_conn *c, sr_task *task)
{
    if (!is_here(c))
        return read_socket(e, c, task);
    sr_bytes view = sr_bytes_of(sr_buffer_at(&c->in), sr_buffer_len(&c->in));
    e->intake.looked = false;
    return outcome(e, c, take_head(e, c, view, false, task));
}

void sr_h1_taken(sr_engine *e, sr_exchange *x)
{
    sr_conn *c = x->conn;
    size_t used = e->intake.used;
    sr_bytes rest = sr_bytes_of(e->intake.view.at + used, e->intake.view.len - used);
    if (e->log && !e->intake.in_scratch) /* its bytes go now; in scratch they stay until more are read */
        sr_accesslog_keep(e, x);
    sr_conn_used(c, e->intake.in_scratch ? 0 : used);
    sr_exchange_drop_request(x);
    if (e->intake.in_scratch && !sr_buffer_add_bytes(&c->in, rest)) {
        x->keep_alive = false; /* no memory for the next request: answers this one and closes */
        c->linger = true;
    }
    e->intake.current = NULL;
    e->intake.view = (sr_bytes){0};
}
