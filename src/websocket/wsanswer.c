#include "wsanswer.h"

#include "../conn/account.h"
#include "../net/descriptors.h"
#include "../net/tempfile.h"
#include "wsaccept.h"
#include "wsevent.h"
#include "wsorders.h"
#include "wsread.h"

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

/* --- a whole response --- */

/* Frees the errand: the application may be asked again. */
static void errand_over(sr_websocket *ws)
{
    sr_websocket_errand_over(ws);
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
    sr_bytes in = sr_buffer_bytes(&reply->body);
    const char *wrong = reply->failed ? "is larger than 32 MiB, or needs too much memory" : NULL;
    bool opening = !ws->accepted, valid = reply->status == 200 && reply->events;
    if (valid && opening && !wrong) {
        ws->accepted = opens(&in);
        wrong = ws->accepted ? NULL : "does not begin with OPEN";
    }
    if (!ws->carrier) { /* what it answers is for nobody, but if it has accepted, it is told of the end */
        if (opening && ws->accepted)
            sr_wscarrier_tell_end(ws);
        return;
    }
    if (!wrong && valid)
        wrong = sr_wsaccept_fields(ws);
    if (wrong || !valid)
        sr_websocket_invalid(ws, wrong);
    else if (!opening || sr_wsaccept(ws))
        sr_wsorders(ws, in);
    if (opening && ws->carrier && ws->state == SR_WEBSOCKET_OPEN) {
        if (sr_live_stays(ws->all->live, &ws->subscriber))
            early(ws);
        else /* those that were open when the server began to stop were told of it */
            ws->subscriber.ops->leave(ws->all->live, &ws->subscriber);
    }
    sr_wsread_broken(ws);
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
    if (ws->state == SR_WEBSOCKET_OPENING && !(h->status == 200 && has_type(h->fields))) {
        ws->carrier->given_at = errand->given_at;
        sr_response_error err = ws->carrier->protocol->head(e, ws->carrier, h, made);
        if (err) /* it may be answered with something else */
            return err;
        ws->state = SR_WEBSOCKET_REFUSED;
    }
    sr_account_head(errand, h->status, 0);
    errand->left = SR_LENGTH_UNKNOWN; /* until the last piece has come */
    if (ws->state == SR_WEBSOCKET_REFUSED)
        return SR_RESPONSE_OK;
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
        size_t length = (size_t)content->length;
        bool fits = content->length <= SR_WEBSOCKET_ANSWER_MAX && sr_buffer_reserve(&r->body, length);
        ssize_t n =
            fits ? sr_tempfile_read(content->fd, r->body.data + r->body.end, length, content->offset) : -1;
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
    sr_websocket_reply_over(ws);
}

static void cut(sr_engine *e, sr_exchange *errand)
{
    sr_websocket *ws = of(errand);
    errand_over(ws);
    sr_websocket_reply_over(ws);
    if (!passes(ws)) {
        sr_websocket_invalid(ws, NULL);
        return;
    }
    sr_exchange *x = sr_wscarrier_release(ws);
    x->protocol->cut(e, x);
}

/* The edge answers in place of the application: there is no room in the queue, or the time is over. */
static void refuse(sr_engine *e, sr_exchange *errand, int status, sr_refusal why, const char *rule)
{
    sr_websocket *ws = of(errand);
    bool opening = ws->state == SR_WEBSOCKET_OPENING, later = ws->entering && ws->accepted;
    errand_over(ws);
    sr_websocket_reply_over(ws);
    if (later) {
        sr_websocket_ask_later(ws);
        return;
    }
    if (!opening && !passes(ws)) {
        sr_counters_add(&e->row->counters.refused[why], 1);
        bool untold =
            status == 503 && ws->told &&
            !sr_buffer_len(&ws->events); /* the end was among the events of which no worker has heard */
        ws->told = ws->told && !untold;
        if (untold && !ws->carrier) {
            sr_wscarrier_tell_end(ws);
            sr_websocket_count(ws);
            sr_websocket_ask_later(ws);
        }
        if (ws->carrier)
            sr_wscarrier_fail(ws, status == 503 ? SR_CLOSE_LATER : SR_CLOSE_ERROR, sr_bytes_of("", 0));
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
    ws->entering = false;
    if (ws->end_at)
        sr_buffer_take(&ws->events, ws->asked);
    else
        sr_buffer_free(&ws->events);
    ws->n_events = 0;
    ws->end_at = 0;
    sr_websocket_count(ws);
}

const char *sr_wsanswer_outcome(const sr_exchange *x, const char *otherwise)
{
    const sr_websocket *ws = x->protocol == &sr_wsanswer ? of(x) : NULL;
    if (!ws || !ws->accepted)
        return otherwise;
    return ws->carrier ? "the WebSocket was closed" : "the client was gone";
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
