#ifdef SR_HTTP2

#include "request.h"

#include "../conn/account.h"
#include "../conn/client.h"
#include "../conn/deadline.h"
#include "../conn/slowest.h"
#include "../conn/spools.h"
#include "../conn/trouble.h"
#include "../http/method.h"
#include "../http/target.h"
#include "../http/token.h"
#include "../http1/framing.h"
#include "flood.h"
#include "priority.h"
#include "refuse.h"

#include <stdlib.h>

#define KEY_FIELD "sec-websocket-key"

static const char LINE_TOO_LONG[] = "the request line is longer than max-request-line",
                  HEAD_TOO_LARGE[] = "the head is larger than max-header-bytes";

/* --- fields --- */

void sr_head_begin(sr_session *s)
{
    sr_buffer_reset(&s->block);
    sr_buffer_reset(&s->cookie);
    s->method = s->path = s->authority = s->protocol = (sr_span){0};
    s->n_fields = 0;
    s->says_priority = s->parsed = false;
    s->priority = SR_PRIORITY_DEFAULT;
    s->status = 0;
    s->why = NULL;
}

void sr_head_free(sr_session *s)
{
    sr_buffer_free(&s->block);
    sr_buffer_free(&s->cookie);
}

static void refuse(sr_session *s, int status, const char *why)
{
    if (s->status)
        return;
    s->status = status;
    s->why = why;
}

/*
 * Where the value of a pseudo-header is noted; NULL: nobody needs it. nghttp2 refuses others, and those
 * behind a field.
 */
static sr_span *pseudo(sr_session *s, sr_bytes name)
{
    return sr_bytes_equal(name, SR_BYTES(":method"))      ? &s->method
           : sr_bytes_equal(name, SR_BYTES(":path"))      ? &s->path
           : sr_bytes_equal(name, SR_BYTES(":authority")) ? &s->authority
           : sr_bytes_equal(name, SR_BYTES(":protocol"))  ? &s->protocol
                                                          : NULL;
}

static bool crumb(sr_buffer *cookie, sr_bytes value)
{
    return (!sr_buffer_len(cookie) || sr_buffer_add(cookie, "; ", 2)) && sr_buffer_add_bytes(cookie, value);
}

void sr_head_field(sr_session *s, sr_bytes name, sr_bytes value)
{
    const sr_request_limits *limits = &s->engine->config.request;
    if (name.len && *name.at == ':') {
        sr_span *to = pseudo(s, name);
        if (to == &s->path && value.len > limits->line)
            refuse(s, 414, LINE_TOO_LONG);
        else if (to && !sr_buffer_add_bytes(&s->block, value))
            refuse(s, 503, NULL);
        else if (to)
            *to = (sr_span){(uint32_t)(sr_buffer_len(&s->block) - value.len), (uint32_t)value.len};
        return;
    }
    if (s->status) /* the method is known: whether it was HEAD */
        return;
    if (sr_bytes_equal(name, SR_BYTES("priority"))) {
        s->says_priority = true;
        sr_priority_read(&s->priority, value);
    }
    if (!s->n_fields)
        s->fields_at = (uint32_t)sr_buffer_len(&s->block);
    if (s->n_fields++ >= limits->fields)
        refuse(s, 431, "there are more header fields than max-header-fields");
    else if (name.len > SR_FIELD_NAME_MAX)
        refuse(s, 431, "a header name is longer than 1024 bytes");
    else if (sr_buffer_len(&s->block) + sr_buffer_len(&s->cookie) + name.len + value.len + 4 > limits->head)
        refuse(s, 431, HEAD_TOO_LARGE);
    else if (!(sr_bytes_equal(name, SR_BYTES("cookie")) ? crumb(&s->cookie, value)
                                                        : sr_response_line(&s->block, name, value)))
        refuse(s, 503, NULL);
}

/* --- the head --- */

static sr_span span(const char *base, sr_bytes s)
{
    return (sr_span){(uint32_t)(s.at - base), (uint32_t)s.len};
}

static sr_bytes part(const sr_session *s, sr_span of)
{
    return sr_bytes_of(sr_buffer_len(&s->block) ? sr_buffer_at(&s->block) + of.at : "", of.len);
}

static sr_bytes fields(const sr_session *s)
{
    size_t from = s->n_fields ? s->fields_at : sr_buffer_len(&s->block);
    return part(s, (sr_span){(uint32_t)from, (uint32_t)(sr_buffer_len(&s->block) - from)});
}

/* CONNECT has no :path (RFC 9113 8.5). Of others it is not there if it is too long. */
static sr_span target(const sr_session *s)
{
    bool none = !s->path.len && sr_bytes_equal(part(s, s->method), SR_BYTES("CONNECT"));
    return none ? s->authority : s->path;
}

/* What HTTP/1.1 asks for by a GET with an upgrade (RFC 8441 5). */
static bool is_extended(const sr_session *s)
{
    return s->protocol.len && sr_bytes_equal(part(s, s->method), SR_BYTES("CONNECT"));
}

/*
 * As that GET has them. The key proves nothing here, and RFC 8441 has none: applications want it in their own
 * handshake.
 */
static bool put_upgrade(const sr_session *s, sr_buffer *to)
{
    sr_bytes protocol = part(s, s->protocol);
    return sr_response_line(to, SR_BYTES("connection"), SR_BYTES("Upgrade")) &&
           sr_response_line(to, SR_BYTES("upgrade"), protocol) &&
           (!sr_bytes_equal_nocase(protocol, SR_BYTES("websocket")) ||
            sr_response_line(to, SR_BYTES(KEY_FIELD), SR_BYTES("AAAAAAAAAAAAAAAAAAAAAA==")));
}

static sr_bytes method(const sr_session *s)
{
    return is_extended(s) ? SR_BYTES("GET") : part(s, s->method);
}

/* The request line, and Host, come before the fields. */
static bool put_together(sr_session *s)
{
    sr_buffer *all = &s->engine->intake.head;
    sr_buffer_reset(all);
    return sr_buffer_add_bytes(all, method(s)) && sr_buffer_add(all, " ", 1) &&
           sr_buffer_add_bytes(all, part(s, target(s))) &&
           sr_buffer_add_bytes(all, SR_BYTES(" HTTP/2.0\r\n")) &&
           (!s->authority.len || sr_response_line(all, SR_BYTES("host"), part(s, s->authority))) &&
           (!is_extended(s) || put_upgrade(s, all)) && sr_buffer_add_bytes(all, fields(s)) &&
           (!sr_buffer_len(&s->cookie) ||
            sr_response_line(all, SR_BYTES("cookie"), sr_buffer_bytes(&s->cookie))) &&
           sr_buffer_add(all, "\r\n", 2);
}

/* Its length, and that of the head, are those of the same request in HTTP/1.1. */
static bool request_line(sr_session *s, sr_request *r, const sr_request_limits *limits, const char *at)
{
    size_t method_len = method(s).len, len = target(s).len;
    if (method_len > SR_METHOD_MAX)
        return sr_request_refuse(r, 400, "the method is longer than 64 bytes");
    if (!sr_is_token(sr_bytes_of(at, method_len)))
        return sr_request_refuse(r, 400, "the method is not a token followed by one space");
    if (method_len + len + sizeof "  HTTP/2.0" - 1 > limits->line)
        return sr_request_refuse(r, 414, LINE_TOO_LONG);
    if (r->head_len > limits->head)
        return sr_request_refuse(r, 431, HEAD_TOO_LARGE);
    r->method = (sr_span){0, (uint32_t)method_len};
    r->target = (sr_span){(uint32_t)method_len + 1, (uint32_t)len};
    r->method_id = (uint8_t)sr_method_of(sr_bytes_of(at, method_len));
    r->extended = is_extended(s);
    if (r->extended && !sr_is_token(part(s, s->protocol)))
        return sr_request_refuse(r, 400, ":protocol is not a token");
    r->is_head = r->method_id == SR_METHOD_HEAD;
    if (r->method_id == SR_METHOD_CONNECT) /* which has no :path, and is refused for what it is */
        return true;
    const char *why = sr_target_parse(r, at);
    if (why)
        return sr_request_refuse(r, 400, why);
    return r->form != SR_FORM_ABSOLUTE || sr_request_refuse(r, 400, ":path is not a path");
}

/* Host beside :authority has to be the same (RFC 9113 8.3.1). */
static bool is_second_host(const sr_session *s, const sr_request *r, const char *at, const sr_field *f)
{
    return r->seen & SR_SEEN_HOST && s->authority.len && f->name.len == 4 &&
           sr_bytes_equal_nocase(sr_span_in(at, f->name), SR_BYTES("host")) &&
           sr_bytes_equal_nocase(sr_span_in(at, f->value), sr_span_in(at, r->host));
}

/* A key beside the one that was made for it. */
static bool is_second_key(const sr_request *r, const char *at, sr_bytes name)
{
    if (!sr_bytes_equal_nocase(name, SR_BYTES(KEY_FIELD)))
        return false;
    for (uint32_t i = 0; i < r->n_fields; i++)
        if (sr_bytes_equal_nocase(sr_span_in(at, r->fields[i].name), name))
            return true;
    return false;
}

static bool field(sr_session *s, sr_request *r, const sr_request_limits *limits, const char *at,
                  sr_bytes text)
{
    const char *colon = memchr(text.at, ':', text.len);
    sr_bytes name = sr_bytes_of(text.at, (size_t)(colon - text.at));
    sr_bytes value = sr_trim(sr_bytes_of(colon + 1, text.len - name.len - 1));
    sr_field f = {span(at, name), span(at, value)};
    if (!sr_is_token(name))
        return sr_request_refuse(r, 400, "a header name contains a byte that is not allowed");
    if (!sr_is_value(value))
        return sr_request_refuse(r, 400, "a header value contains a control character");
    if (is_second_host(s, r, at, &f) || (is_extended(s) && is_second_key(r, at, name)))
        return true;
    if (r->n_fields >= limits->fields) /* :authority counts, as Host does in HTTP/1.1 */
        return sr_request_refuse(r, 431, "there are more header fields than max-header-fields");
    bool underscore = memchr(name.at, '_', name.len);
    sr_field_use use = underscore ? sr_framing_underscored(r, limits, at, &f) : sr_framing_field(r, at, &f);
    if (use == SR_FIELD_KEEP)
        r->fields[r->n_fields++] = f;
    return use != SR_FIELD_REFUSED;
}

/* r->status says why not. */
static bool parse(sr_session *s, sr_request *r)
{
    sr_request_limits limits = sr_client_limits(s->engine, s->conn);
    const sr_buffer *head = &s->engine->intake.head;
    const char *at = sr_buffer_at(head), *end = at + sr_buffer_len(head);
    sr_request_init(r);
    r->version = SR_HTTP_2;
    r->shared = !is_extended(s);
    r->head_len = (uint32_t)(end - at);
    if (!request_line(s, r, &limits, at))
        return false;
    const char *from = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    while (end - from > 2) {
        const char *newline = memchr(from, '\n', (size_t)(end - from));
        if (!field(s, r, &limits, at, sr_bytes_of(from, (size_t)(newline - from) - 1)))
            return false;
        from = newline + 1;
    }
    return sr_framing_decide(r, at);
}

static bool keep(sr_session *s, sr_h2_stream *st, const sr_request *r)
{
    sr_exchange *x = st->exchange;
    size_t used = sr_request_bytes(r);
    x->body = calloc(1, sizeof *x->body);
    if (!x->body)
        return false;
    x->body->fd = -1;
    x->body->pace = sr_pace_begin(s->engine->now);
    x->parse = malloc(sizeof *x->parse);
    if (!x->parse)
        return false;
    memcpy(x->parse, r, used);
    if (r->framing == SR_BODY_NONE) /* its length is not known yet */
        x->parse->framing = SR_BODY_CHUNKED;
    return sr_stream_keep_head(st, sr_buffer_bytes(&s->engine->intake.head));
}

/*
 * Bytes of a body that may be on their way. Each stream begins with less: a tunnel keeps in memory what its
 * application does not read.
 */
#define BODY_WINDOW (1024 * 1024)

void sr_head_done(sr_session *s, sr_h2_stream *st, bool ended)
{
    sr_engine *e = s->engine;
    sr_request *r = &e->intake.request;
    sr_exchange *x = st->exchange = sr_exchange_add(e, s->conn);
    if (!x) {
        sr_session_reset(s, st->id, NGHTTP2_REFUSED_STREAM);
        return;
    }
    sr_deadline_kind waits = s->conn->deadline.kind;
    if (waits == SR_DEADLINE_IDLE || waits == SR_DEADLINE_HEAD) /* nobody takes it for silent in this step */
        sr_deadline_clear(e, s->conn);
    x->stream = st;
    x->stream_number = (uint32_t)st->id;
    x->version = SR_HTTP_2;
    sr_h2_priority_request(st);
    x->urgency = st->priority.urgency;
    if (!put_together(s))
        refuse(s, 503, NULL);
    s->parsed = !s->status;
    if (!s->status && !parse(s, r))
        refuse(s, r->status, r->why);
    x->is_head = sr_bytes_equal(part(s, s->method), SR_BYTES("HEAD"));
    if (!s->status && r->framing == SR_BODY_LENGTH && r->content_length > e->config.max_body)
        refuse(s, 413, SR_BODY_TOO_LARGE);
    x->is_tunnel = !s->status && r->extended;
    if (x->is_tunnel && (ended || r->framing != SR_BODY_NONE))
        refuse(s, 400, "an extended CONNECT has a body, or ends with its head");
    if (!s->status && (ended || r->extended)) {
        s->complete = st;
        return;
    }
    if (!s->status && !sr_flood_keeps(s, r->head_len)) {
        sr_session_reset(s, st->id, NGHTTP2_REFUSED_STREAM);
        sr_stream_over(st, SR_OVER_ABORTED);
        return;
    }
    if (!s->status && !keep(s, st, r))
        refuse(s, 503, NULL);
    if (s->status) {
        sr_h2_refuse(e, x, s->status, sr_account_fault(s->status), s->why);
        return;
    }
    if (r->expect == SR_EXPECT_CONTINUE) {
        const nghttp2_nv nv = {(uint8_t *)":status", (uint8_t *)"100", 7, 3, NGHTTP2_NV_FLAG_NONE};
        sr_session_submitted(s, nghttp2_submit_headers(s->ng, NGHTTP2_FLAG_NONE, st->id, NULL, &nv, 1, NULL));
        sr_counters_add(&e->row->counters.responses[0], 1);
    }
    if (r->framing != SR_BODY_LENGTH || r->content_length > NGHTTP2_INITIAL_WINDOW_SIZE)
        sr_session_submitted(
            s, nghttp2_session_set_local_window_size(s->ng, NGHTTP2_FLAG_NONE, st->id, BODY_WINDOW));
    sr_deadline_set_exchange(e, x, SR_DEADLINE_BODY);
}

/* --- the body --- */

enum {
    CROWD_EACH = 16 * 1024,
    CROWD_MAX = 1024 * 1024, /* bytes in memory, and at most CROWD_EACH of each body besides */
};

/*
 * Whether the bodies of a connection have so much memory that the next bytes of this one go to a file. 128 of
 * them would have 8 MiB, which no limit of connections foresees. Asked each CROWD_EACH bytes of a body.
 */
static bool crowded(const sr_session *s, const sr_body *b, size_t more)
{
    size_t all = 0;
    if (b->spooled || (b->length + more) / CROWD_EACH == b->length / CROWD_EACH)
        return b->crowded;
    for (const sr_exchange *o = s->conn->exchange; o; o = o->older)
        all += o->body ? sr_buffer_len(&o->body->mem) : 0;
    return all > CROWD_MAX;
}

void sr_body_arrived(sr_session *s, sr_h2_stream *st, sr_bytes data)
{
    sr_engine *e = s->engine;
    sr_exchange *x = st->exchange;
    sr_body *b = x->body;
    bool filed = b->fd >= 0;
    b->received += data.len;
    b->crowded = crowded(s, b, data.len);
    if (!sr_slowest_has_room(e, s->conn, b, data.len)) {
        sr_trouble_count(e, SR_TROUBLE_SLOWEST, 1, 0);
        sr_h2_refuse(e, x, 507, SR_REFUSED_TEMPORARY, NULL);
        return;
    }
    if (sr_body_store(b, &e->config, data) == SR_BODY_BAD) {
        sr_spools_failed(e, b->err);
        sr_h2_refuse(e, x, b->status, sr_account_fault(b->status), b->why);
    } else if (b->fd >= 0 && !filed && sr_stream_has_enough(e, x, b->fd)) {
        sr_h2_refuse(e, x, 503, SR_REFUSED_DESCRIPTORS, NULL);
    }
}

void sr_body_over(sr_session *s, sr_h2_stream *st)
{
    sr_exchange *x = st->exchange;
    sr_body *b = x->body;
    if (sr_body_done(b) == SR_BODY_DONE) {
        s->complete = st;
        return;
    }
    sr_spools_failed(s->engine, b->err);
    sr_h2_refuse(s->engine, x, b->status, sr_account_fault(b->status), b->why);
}

/* --- a whole request --- */

void sr_request_give(sr_session *s, sr_task *task)
{
    sr_engine *e = s->engine;
    sr_conn *c = s->conn;
    sr_h2_stream *st = s->complete;
    sr_exchange *x = st->exchange;
    const sr_request *r = x->parse ? x->parse : &e->intake.request;
    const sr_buffer *head = x->parse ? &st->head : &e->intake.head;
    s->complete = NULL;
    sr_deadline_clear_exchange(e, x);
    c->requests++;
    if (sr_session_spent(s, SR_SPENT_MAX)) /* it has heard that this would come */
        sr_session_goaway(s);
    c->why = SR_CLOSED_AFTER;
    x->is_head = r->is_head;
    x->keep_alive = true;
    x->ready_at = e->now;
    x->owed = true;
    *task = (sr_task){.exchange = x, .request = r, .base = sr_buffer_at(head), .body_fd = -1};
    if (e->config.trusted.n)
        task->forwarded = sr_client_forwarded(e, x, r, task->base);
    x->proxied = x->trusted || r->proxied;
    e->intake.current = c;
    sr_body *b = x->body;
    if (b) {
        task->body_length = b->length;
        task->body = sr_buffer_bytes(&b->mem);
        task->body_fd = sr_body_take(b);
        st->filed = task->body_fd >= 0;
    }
}

#endif
