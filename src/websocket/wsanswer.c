#include "wsanswer.h"

#include "../conn/account.h"
#include "../conn/joined.h"
#include "../conn/send.h"
#include "../http/date.h"
#include "../http/grip.h"
#include "../http/token.h"
#include "../live/channel.h"
#include "../net/descriptors.h"
#include "eventhead.h"
#include "wscontrol.h"
#include "wsevent.h"
#include "wsread.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static sr_websocket *of(const sr_exchange *errand)
{
    return errand->held;
}

static bool passes(const sr_websocket *ws)
{
    return ws->state == SR_WEBSOCKET_REFUSED && ws->carrier;
}

static sr_bytes bytes_of(const sr_buffer *b)
{
    return sr_bytes_of(sr_buffer_len(b) ? sr_buffer_at(b) : "", sr_buffer_len(b));
}

static void reply_free(sr_websocket *ws)
{
    if (!ws->reply)
        return;
    sr_buffer_free(&ws->reply->fields);
    sr_buffer_free(&ws->reply->body);
    free(ws->reply);
    ws->reply = NULL;
}

/* The application has failed: `why`, if it can be told, is for who looks after it. */
static void invalid(sr_websocket *ws, const char *why)
{
    if (why && ws->all->invalid)
        ws->all->invalid(ws->all->with, why);
    if (ws->carrier)
        sr_wscarrier_fail(ws, SR_CLOSE_ERROR, sr_bytes_of("", 0));
}

/* --- fields --- */

/* Cuts the first line off. False: there is none, or it is none. */
static bool line(sr_bytes *lines, sr_bytes *name, sr_bytes *value)
{
    const char *end = lines->len ? memchr(lines->at, '\n', lines->len) : NULL;
    const char *colon = end ? memchr(lines->at, ':', (size_t)(end - lines->at)) : NULL;
    if (!colon || end == lines->at || end[-1] != '\r')
        return false;
    *name = sr_bytes_of(lines->at, (size_t)(colon - lines->at));
    *value = colon + 1 < end ? sr_trim(sr_bytes_of(colon + 1, (size_t)(end - 1 - (colon + 1))))
                             : sr_bytes_of("", 0);
    *lines = sr_bytes_of(end + 1, lines->len - (size_t)(end + 1 - lines->at));
    return true;
}

static bool is(sr_bytes name, const char *other)
{
    return sr_bytes_equal_nocase(name, sr_bytes_of(other, strlen(other)));
}

static bool sets_meta(sr_bytes name, sr_bytes *meta)
{
    static const char prefix[] = "set-meta-";
    size_t len = sizeof prefix - 1;
    if (name.len <= len || !sr_bytes_equal_nocase(sr_bytes_of(name.at, len), sr_bytes_of(prefix, len)))
        return false;
    *meta = sr_bytes_of(name.at + len, name.len - len);
    return true;
}

/* Sec-WebSocket-Extensions: grip; message-prefix=... */
static void extension(sr_websocket *ws, sr_bytes value)
{
    static const char key[] = "message-prefix=";
    sr_bytes all = value, element;
    while (sr_list_next(&all, &element)) {
        const char *semicolon = memchr(element.at, ';', element.len);
        sr_bytes name =
            semicolon ? sr_trim(sr_bytes_of(element.at, (size_t)(semicolon - element.at))) : element;
        if (!is(name, "grip"))
            continue;
        ws->grip = true;
        memcpy(ws->message_prefix, "m:", ws->prefix = 2);
        if (!semicolon)
            continue;
        sr_bytes rest =
            sr_trim(sr_bytes_of(semicolon + 1, (size_t)(element.at + element.len - (semicolon + 1))));
        if (rest.len < sizeof key - 1 || memcmp(rest.at, key, sizeof key - 1) != 0)
            continue;
        rest = sr_bytes_of(rest.at + sizeof key - 1, rest.len - (sizeof key - 1));
        if (rest.len >= 2 && rest.at[0] == '"' && rest.at[rest.len - 1] == '"')
            rest = sr_bytes_of(rest.at + 1, rest.len - 2);
        if (rest.len <= SR_WEBSOCKET_PREFIX_MAX)
            memcpy(ws->message_prefix, rest.at, ws->prefix = (uint8_t)rest.len);
    }
}

/* What is said to the edge. NULL, or what is wrong. */
static const char *take_fields(sr_websocket *ws)
{
    sr_bytes lines = bytes_of(&ws->reply->fields), name, value, meta;
    while (line(&lines, &name, &value)) {
        if (sets_meta(name, &meta) && !sr_eventhead_meta(&ws->meta, meta, value))
            return "has an invalid Set-Meta field, or too many";
        if (ws->state == SR_WEBSOCKET_OPENING && is(name, "sec-websocket-extensions"))
            extension(ws, value);
    }
    return NULL;
}

/* Whether a field of the response to OPEN is for the client. */
static bool is_for_client(sr_bytes name)
{
    sr_bytes meta;
    return !sets_meta(name, &meta) && !is(name, "content-type") && !is(name, "content-length") &&
           !is(name, "upgrade") && !is(name, "connection") && !is(name, "transfer-encoding") &&
           !is(name, "keep-alive") && !is(name, "keep-alive-interval") &&
           !is(name, "content-bytes-accepted") && !is(name, "sec-websocket-accept") &&
           !is(name, "sec-websocket-extensions") && !sr_grip_is(name);
}

/* --- opening --- */

/* The fields for the client, as lines. */
static sr_response_error fields_for_client(const sr_websocket *ws, sr_buffer *out)
{
    sr_response r;
    sr_bytes lines = bytes_of(&ws->reply->fields), name, value;
    sr_response_error err = sr_response_begin(&r, 200, false, false);
    while (!err && line(&lines, &name, &value))
        if (is_for_client(name))
            err = sr_response_field(&r, out, name, value);
    return err;
}

/* HTTP/1.1: a response that a head of sr_protocol does not make, as it is neither final nor interim. */
static bool switched(sr_websocket *ws, sr_bytes fields)
{
    static const char begin[] =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    sr_engine *e = ws->all->engine;
    sr_exchange *x = ws->carrier;
    sr_buffer *out = &ws->all->out;
    sr_buffer_reset(out);
    bool ok =
        sr_buffer_add(out, begin, sizeof begin - 1) &&
        sr_response_line(out, SR_BYTES("Sec-WebSocket-Accept"), sr_bytes_of(ws->accept, sizeof ws->accept)) &&
        sr_response_line(out, SR_BYTES("Date"), sr_bytes_of(e->date, SR_DATE_LEN)) &&
        (!e->config.server.len || sr_response_line(out, SR_BYTES("Server"), e->config.server)) &&
        sr_buffer_add_bytes(out, fields) && sr_buffer_add(out, "\r\n", 2);
    if (!ok)
        return false;
    x->keep_alive = x->chunked = false;
    x->left = SR_LENGTH_UNKNOWN;
    sr_account_head(x, 101, sr_buffer_len(out));
    sr_wscarrier_put(ws, bytes_of(out));
    return true;
}

/* False: it is over for the client. */
static bool answer_client(sr_websocket *ws)
{
    sr_engine *e = ws->all->engine;
    sr_exchange *x = ws->carrier;
    sr_buffer *text = &ws->all->text;
    sr_bytes made;
    sr_buffer_reset(text);
    bool ok = !fields_for_client(ws, text);
    if (ok && ws->streams) {
        const sr_head head = {200, bytes_of(text), SR_LENGTH_UNKNOWN, SR_LENGTH_UNKNOWN, false};
        ok = !x->protocol->head(e, x, &head, &made);
    } else if (ok) {
        ok = switched(ws, bytes_of(text));
    }
    if (!ok)
        invalid(ws, "has an invalid field");
    return ok && ws->carrier;
}

/* It is open from now on. False: it is over for the client. */
static bool open_it(sr_websocket *ws)
{
    sr_live *live = ws->all->live;
    ws->carrier->is_own = true; /* the time that it is open is no latency */
    if (!answer_client(ws))
        return false;
    ws->state = SR_WEBSOCKET_OPEN;
    ws->heard = sr_live_second(live);
    sr_subscriber_begin(live, &ws->subscriber, ws->all->ops, SR_HELD_WEBSOCKET);
    sr_wscarrier_schedule(ws);
    return sr_wscarrier_watch(ws);
}

/* --- events --- */

static bool keep_alive(sr_websocket *ws, const sr_wscontrol *c)
{
    free(ws->alive);
    ws->alive = NULL;
    if (!c->content.at) {
        sr_wscarrier_schedule(ws);
        return true;
    }
    if (!(ws->alive = malloc(sizeof *ws->alive + c->content.len)))
        return false;
    *ws->alive = (sr_wsalive){.seconds = c->timeout,
                              .due = sr_live_second(ws->all->live) + c->timeout,
                              .interval = c->interval,
                              .kind = c->message,
                              .len = c->content.len};
    if (c->content.len)
        memcpy(ws->alive->content, c->content.at, c->content.len);
    sr_wscarrier_schedule(ws);
    return true;
}

/* NULL, or what is wrong. */
static const char *control(sr_websocket *ws, sr_bytes json)
{
    sr_wscontrol c;
    const char *why;
    sr_buffer *text = &ws->all->text;
    sr_live *live = ws->all->live;
    sr_buffer_reset(text);
    if (!sr_buffer_reserve(text, json.len))
        return "needs too much memory";
    if (!sr_wscontrol_read(&c, json, text->data ? text->data : (char[1]){0}, &why))
        return why;
    switch (c.kind) {
    case SR_WSCONTROL_SUBSCRIBE:
        switch (sr_subscribe(live, &ws->subscriber, c.channel, c.prev_id)) {
        case SR_SUBSCRIBED_NOT:
            return "subscribes to too much";
        case SR_SUBSCRIBED_LATE:
            ws->late = true;
            return NULL;
        case SR_SUBSCRIBED:
            return NULL;
        }
        return NULL;
    case SR_WSCONTROL_UNSUBSCRIBE:
        sr_unsubscribe(live, &ws->subscriber, c.channel);
        return NULL;
    case SR_WSCONTROL_DETACH:
        ws->detached = true;
        sr_buffer_free(&ws->events);
        return NULL;
    case SR_WSCONTROL_KEEP_ALIVE:
        return keep_alive(ws, &c) ? NULL : "needs too much memory";
    case SR_WSCONTROL_SET_META:
        return sr_eventhead_meta(&ws->meta, c.name, c.content.at ? c.content : sr_bytes_of("", 0))
                   ? NULL
                   : "sets an invalid meta field, or too many";
    case SR_WSCONTROL_OTHER:
        return NULL;
    }
    return NULL;
}

static bool begins_with(sr_bytes s, const char *at, size_t len)
{
    return s.len >= len && memcmp(s.at, at, len) == 0;
}

static bool frame(sr_buffer *out, sr_wsframe_kind kind, sr_bytes bytes)
{
    char head[SR_WSFRAME_HEAD_MAX];
    return sr_buffer_add(out, head, sr_wsframe_head(head, kind, bytes.len)) &&
           sr_buffer_add_bytes(out, bytes);
}

/* Appends a message for the client, or obeys what it says to the edge. NULL, or what is wrong. */
static const char *message(sr_websocket *ws, const sr_wsevent *event, sr_buffer *out)
{
    sr_bytes content = event->content;
    bool text = event->kind == SR_WSEVENT_TEXT;
    if (ws->grip && text && begins_with(content, "c:", 2))
        return control(ws, sr_bytes_of(content.at + 2, content.len - 2));
    if (ws->grip && !begins_with(content, ws->message_prefix, ws->prefix))
        return NULL; /* as in Pushpin */
    if (ws->grip)
        content = sr_bytes_of(content.at + ws->prefix, content.len - ws->prefix);
    if (text && !sr_is_utf8(content))
        return "has a text that is not UTF-8";
    ws->carrier->messages++;
    return frame(out, text ? SR_WSFRAME_TEXT : SR_WSFRAME_BINARY, content) ? NULL : "needs too much memory";
}

static const char *close_event(const sr_wsevent *event, unsigned *code, sr_bytes *reason)
{
    const unsigned char *at = (const unsigned char *)event->content.at;
    *code = SR_CLOSE_NONE;
    *reason = sr_bytes_of("", 0);
    if (!event->content.len)
        return NULL;
    *code = event->content.len < 2 ? 0 : (unsigned)(at[0] << 8 | at[1]);
    if (!sr_wsframe_code(*code))
        return "closes with a code that must not be sent";
    *reason = sr_bytes_of(event->content.at + 2, event->content.len - 2);
    return reason->len > SR_WSFRAME_CONTROL_MAX - 2 || !sr_is_utf8(*reason) ? "closes for an invalid reason"
                                                                            : NULL;
}

/* Does what the events say. The frames go out together. */
static void obey(sr_websocket *ws, sr_bytes in)
{
    sr_buffer *out = &ws->all->out;
    sr_wsevent event;
    sr_wsevent_result r;
    const char *wrong = NULL;
    unsigned code = 0;
    sr_bytes reason = {"", 0};
    bool closes = false, leaves = false, controls = true;
    sr_buffer_reset(out);
    while (!wrong && !closes && !leaves && (r = sr_wsevent_next(&in, &event)) != SR_WSEVENT_END) {
        if (r == SR_WSEVENT_BAD) {
            wrong = "has no events as the content type says";
            break;
        }
        switch (event.kind) {
        case SR_WSEVENT_OPEN:
            wrong = "has an OPEN that is not the first";
            break;
        case SR_WSEVENT_TEXT:
        case SR_WSEVENT_BINARY:
            wrong = message(ws, &event, out);
            break;
        case SR_WSEVENT_PING:
        case SR_WSEVENT_PONG:
            controls = event.content.len <= SR_WSFRAME_CONTROL_MAX;
            if (!controls ||
                !frame(out, event.kind == SR_WSEVENT_PING ? SR_WSFRAME_PING : SR_WSFRAME_PONG, event.content))
                wrong = "has a PING or PONG of more than 125 bytes";
            break;
        case SR_WSEVENT_CLOSE:
            wrong = close_event(&event, &code, &reason);
            closes = !wrong;
            break;
        case SR_WSEVENT_DISCONNECT:
            leaves = true;
            break;
        }
    }
    if (wrong) {
        invalid(ws, wrong);
        return;
    }
    if (ws->state != SR_WEBSOCKET_OPEN || (sr_buffer_len(out) && !sr_wscarrier_put(ws, bytes_of(out))))
        return;
    if (leaves)
        sr_wscarrier_drop(ws);
    else if (ws->late) /* it has missed something, and comes again */
        sr_wscarrier_close(ws, SR_CLOSE_RESTART, sr_bytes_of("", 0));
    else if (closes)
        sr_wscarrier_close(ws, code, reason);
    else if (ws->closed && !sr_buffer_len(&ws->events)) /* it was told, and has nothing to say */
        sr_wscarrier_close(ws, ws->code, sr_bytes_of("", 0));
}

/* --- a whole response --- */

/* Frees the errand: the application may be asked again. */
static void errand_over(sr_websocket *ws)
{
    sr_errand_end(ws->all->engine, ws->errand);
    ws->errand = NULL;
    sr_websocket_ask(ws);
}

/* Cuts OPEN off the events of the first response. */
static bool opens(sr_bytes *in)
{
    sr_wsevent event;
    return sr_wsevent_next(in, &event) == SR_WSEVENT_NEXT && event.kind == SR_WSEVENT_OPEN;
}

/* Bytes that have come before it was open. */
static void early(sr_websocket *ws)
{
    sr_buffer in = ws->early;
    ws->early = (sr_buffer){0};
    if (sr_buffer_len(&in))
        sr_wsread_bytes(ws, sr_buffer_at(&in), sr_buffer_len(&in));
    sr_buffer_free(&in);
}

static void answered(sr_websocket *ws)
{
    const sr_wsreply *reply = ws->reply;
    sr_bytes in = bytes_of(&reply->body);
    const char *wrong = reply->failed ? "is larger than 32 MiB, or needs too much memory" : NULL;
    bool opening = !ws->accepted, valid = reply->status == 200 && reply->events;
    if (valid && opening && !wrong) {
        ws->accepted = opens(&in);
        wrong = ws->accepted ? NULL : "does not begin with OPEN";
    }
    if (!ws->carrier) { /* what it answers is for nobody, but if it has accepted, it is told of the end */
        if (opening && ws->accepted)
            sr_wsevent_add(&ws->events, SR_WSEVENT_DISCONNECT, sr_bytes_of("", 0));
        return;
    }
    if (!wrong && valid)
        wrong = take_fields(ws);
    if (wrong || !valid)
        invalid(ws, wrong);
    else if (!opening || open_it(ws))
        obey(ws, in);
    if (opening && ws->carrier && ws->state == SR_WEBSOCKET_OPEN)
        early(ws);
    sr_wsread_resume(ws);
}

/* --- the protocol --- */

static bool has_type(sr_bytes lines)
{
    return sr_wsevent_type(sr_response_value(lines, SR_BYTES("content-type")));
}

static sr_response_error head(sr_engine *e, sr_exchange *errand, const sr_head *h, sr_bytes *made)
{
    sr_websocket *ws = of(errand);
    *made = h->fields;
    if (h->status < 200)
        return SR_RESPONSE_OK;
    sr_account_head(errand, h->status, 0);
    errand->left = SR_LENGTH_UNKNOWN; /* until the last piece has come */
    if (ws->state == SR_WEBSOCKET_OPENING && !(h->status == 200 && has_type(h->fields))) {
        ws->state = SR_WEBSOCKET_REFUSED;
        ws->carrier->given_at = errand->given_at;
        return ws->carrier->protocol->head(e, ws->carrier, h, made);
    }
    if (!ws->reply && !(ws->reply = calloc(1, sizeof *ws->reply)))
        return SR_RESPONSE_NO_MEMORY;
    ws->reply->status = h->status;
    ws->reply->events = has_type(h->fields);
    return sr_buffer_add_bytes(&ws->reply->fields, h->fields) ? SR_RESPONSE_OK : SR_RESPONSE_NO_MEMORY;
}

static void piece(sr_engine *e, sr_exchange *errand, sr_bytes body, bool last)
{
    sr_websocket *ws = of(errand);
    if (last)
        errand->left = 0;
    if (passes(ws)) {
        ws->carrier->protocol->piece(e, ws->carrier, body, last);
        return;
    }
    sr_wsreply *r = ws->reply;
    if (r && r->events && !r->failed)
        r->failed = sr_buffer_len(&r->body) + body.len > SR_WEBSOCKET_ANSWER_MAX ||
                    !sr_buffer_add_bytes(&r->body, body);
}

/* Read at once, as events are small. */
static void file(sr_engine *e, sr_exchange *errand, const sr_content *content)
{
    sr_websocket *ws = of(errand);
    sr_wsreply *r = ws->reply;
    if (passes(ws)) {
        ws->carrier->protocol->file(e, ws->carrier, content);
        return;
    }
    if (r && r->events && !r->failed) {
        bool fits = content->length <= SR_WEBSOCKET_ANSWER_MAX &&
                    sr_buffer_reserve(&r->body, (size_t)content->length);
        ssize_t n =
            fits ? pread(content->fd, r->body.data + r->body.end, (size_t)content->length, content->offset)
                 : -1;
        r->failed = n != (ssize_t)content->length;
        r->body.end += n > 0 ? (size_t)n : 0;
    }
    sr_descriptors_discard(content->fd);
    sr_parts_free(content->parts);
}

static sr_output *output(const sr_exchange *errand)
{
    const sr_websocket *ws = of(errand);
    return passes(ws) ? ws->carrier->protocol->output(ws->carrier) : NULL;
}

static bool settle(sr_engine *e, sr_exchange *errand)
{
    sr_websocket *ws = of(errand);
    return !passes(ws) || ws->carrier->protocol->settle(e, ws->carrier);
}

static void count(sr_engine *e, const sr_exchange *errand)
{
    sr_counters *counters = &e->row->counters;
    uint32_t status = errand->status;
    sr_counters_add(&counters->responses[status && status < 600 ? status / 100 - 1 : 4], 1);
    sr_histogram_add(&counters->latency, (uint64_t)(e->now - errand->ready_at));
}

static void end(sr_engine *e, sr_exchange *errand)
{
    sr_websocket *ws = of(errand);
    if (ws->state == SR_WEBSOCKET_REFUSED) {
        errand_over(ws);
        sr_exchange *x = sr_wscarrier_release(ws);
        x->protocol->end(e, x);
        return;
    }
    count(e, errand);
    errand_over(ws);
    if (ws->reply)
        answered(ws);
    reply_free(ws);
}

static void cut(sr_engine *e, sr_exchange *errand)
{
    sr_websocket *ws = of(errand);
    errand_over(ws);
    reply_free(ws);
    if (!passes(ws)) {
        invalid(ws, NULL);
        return;
    }
    sr_exchange *x = sr_wscarrier_release(ws);
    x->protocol->cut(e, x);
}

/* The edge answers in place of the application: there is no room in the queue, or the time is over. */
static void refuse(sr_engine *e, sr_exchange *errand, int status, sr_refusal why, const char *rule)
{
    sr_websocket *ws = of(errand);
    bool opening = ws->state == SR_WEBSOCKET_OPENING;
    errand_over(ws);
    reply_free(ws);
    if (!opening && !passes(ws)) {
        sr_counters_add(&e->row->counters.refused[why], 1);
        invalid(ws, NULL);
        return;
    }
    sr_exchange *x = sr_wscarrier_release(ws);
    if (opening)
        x->protocol->refuse(e, x, status, why, rule);
    else
        x->protocol->cut(e, x);
}

/* The request was copied: its events are told. */
static void taken(sr_engine *e, sr_exchange *errand)
{
    sr_websocket *ws = of(errand);
    (void)e;
    sr_buffer_free(&ws->events);
    sr_websocket_count(ws);
}

const sr_protocol sr_wsanswer = {
    .taken = taken,
    .head = head,
    .piece = piece,
    .file = file,
    .output = output,
    .settle = settle,
    .end = end,
    .cut = cut,
    .refuse = refuse,
};
