#ifdef SR_HTTP2

#include "put.h"

#include "../base/decimal.h"
#include "../conn/account.h"
#include "../conn/client.h"
#include "../conn/deadline.h"
#include "../conn/extra.h"
#include "../conn/send.h"
#include "../http/token.h"
#include "../net/descriptors.h"
#include "priority.h"

#include <stdlib.h>

enum { INTERIM_MAX = 64 * 1024 }; /* bytes, as with HTTP/1.1 */

/* --- the body, as nghttp2 asks for it --- */

static ssize_t give(nghttp2_session *ng, int32_t id, uint8_t *to, size_t len, uint32_t *flags,
                    nghttp2_data_source *source, void *with)
{
    sr_h2_stream *st = source->ptr;
    sr_engine *e = st->session->engine;
    ssize_t n = 0;
    (void)ng, (void)id, (void)with;
    if (st->exchange && st->exchange->broken) /* it must not look complete */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (st->out) {
        e->pending -= sr_output_memory(st->out);
        n = sr_output_take(st->out, (char *)to, len);
        e->pending += sr_output_memory(st->out);
        if (n < 0 && st->exchange)
            st->exchange->broken = true;
        if (n < 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        if (n > 0)
            sr_pace_moved(&st->out->pace, SR_PACE_OUTPUT, e->now, (size_t)n);
        if (st->out->stalled && !n) {
            if (!st->out->broken_at)
                e->leased.asked = true;
            st->deferred = st->session->stalls = true;
            return NGHTTP2_ERR_DEFERRED;
        }
        if (sr_output_done(st->out))
            sr_stream_drop_output(st);
    }
    if (!st->out && (st->last || (st->exchange && !st->exchange->left))) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        return n;
    }
    st->deferred = !n;
    return n ? n : NGHTTP2_ERR_DEFERRED;
}

/* There is more of it, or its end. */
static void more(sr_h2_stream *st)
{
    if (st->deferred) {
        st->deferred = false;
        sr_session_submitted(st->session, nghttp2_session_resume_data(st->session->ng, st->id));
    }
    sr_session_due(st->session);
}

/* --- the head --- */

static sr_response_error write_final(sr_engine *e, sr_exchange *x, const sr_head *h, sr_response *r,
                                     sr_buffer *out)
{
    char digits[SR_DECIMAL_MAX];
    sr_response_error err = sr_response_begin(r, h->status, x->is_head, true);
    if (!err)
        err = sr_extra_fields(e, x, r, h, out);
    if (err)
        return err;
    uint64_t length = sr_response_decide(r, h->length);
    bool ok = length == SR_LENGTH_UNKNOWN ||
              sr_response_line(out, SR_BYTES("Content-Length"), sr_decimal(digits + sizeof digits, length));
    ok = ok && (r->has_date || sr_response_line(out, SR_BYTES("Date"), sr_bytes_of(e->date, SR_DATE_LEN)));
    ok = ok && (r->has_server || !e->config.server.len ||
                sr_response_line(out, SR_BYTES("Server"), e->config.server));
    return ok ? SR_RESPONSE_OK : SR_RESPONSE_NO_MEMORY;
}

static size_t count(sr_bytes lines)
{
    size_t n = 0;
    for (const char *at = lines.at; (at = memchr(at, '\n', lines.len - (size_t)(at - lines.at))); at++)
        n++;
    return n;
}

/* Gives lines to nghttp2 as fields, whose names are in lower case (RFC 9113 8.2). */
static bool submit(sr_h2_stream *st, int status, sr_buffer *text, bool is_interim, bool has_body)
{
    nghttp2_session *ng = st->session->ng;
    sr_bytes lines = sr_bytes_of(sr_buffer_at(text), sr_buffer_len(text));
    enum { FEW = 32 };
    nghttp2_nv few[FEW], *nv = few;
    size_t n = 0, most = count(lines) + 1;
    if (most > FEW && !(nv = malloc(most * sizeof *nv)))
        return false;
    char code[4] = {(char)('0' + status / 100), (char)('0' + status / 10 % 10), (char)('0' + status % 10), 0};
    bool prioritizes = false;
    nv[n++] = (nghttp2_nv){(uint8_t *)":status", (uint8_t *)code, 7, 3, NGHTTP2_NV_FLAG_NONE};
    for (char *at = sr_buffer_at(text), *end = at + lines.len; at < end;) {
        char *colon = memchr(at, ':', (size_t)(end - at)), *newline = memchr(at, '\n', (size_t)(end - at));
        for (char *i = at; i < colon; i++)
            *i = (char)sr_lower((unsigned char)*i);
        sr_bytes name = sr_bytes_of(at, (size_t)(colon - at));
        sr_bytes value =
            sr_trim(sr_bytes_of(colon + 2, (size_t)(newline - 1 - (colon + 2)))); /* RFC 9113 8.2.1 */
        if (!is_interim && sr_bytes_equal(name, SR_BYTES("priority"))) {
            sr_priority_read(&st->priority, value);
            prioritizes = true;
        }
        if (!sr_bytes_equal(
                name, SR_BYTES("upgrade"))) /* the others of RFC 9113 8.2.2 are dropped in any version */
            nv[n++] = (nghttp2_nv){(uint8_t *)at, (uint8_t *)(uintptr_t)value.at, name.len, value.len,
                                   NGHTTP2_NV_FLAG_NONE};
        at = newline + 1;
    }
    const nghttp2_data_provider body = {{.ptr = st}, give};
    int err = is_interim ? nghttp2_submit_headers(ng, NGHTTP2_FLAG_NONE, st->id, NULL, nv, n, NULL)
                         : nghttp2_submit_response(ng, st->id, nv, n, has_body ? &body : NULL);
    if (prioritizes && !err)
        sr_h2_priority_response(st);
    if (nv != few)
        free(nv);
    return !err || err > NGHTTP2_ERR_FATAL; /* the stream may be closed already */
}

/*
 * Whether so much waits for a client that does not read that this interim response is dropped. It counts
 * otherwise.
 */
static bool is_unread(sr_session *s, size_t len)
{
    if (s->conn->out && s->informed > INTERIM_MAX)
        return true;
    s->informed += len;
    return false;
}

sr_response_error sr_h2_head(sr_engine *e, sr_exchange *x, const sr_head *h, sr_bytes *made)
{
    sr_h2_stream *st = x->stream;
    sr_buffer *out = &e->lines;
    sr_response r = {.status = h->status};
    bool is_interim = h->status < 200;
    sr_buffer_reset(out);
    if (is_interim && !sr_informational_status(h->status))
        return SR_RESPONSE_BAD_STATUS;
    sr_response_error err =
        is_interim ? sr_informational_fields(out, h->fields) : write_final(e, x, h, &r, out);
    if (err)
        return err;
    *made = sr_bytes_of(sr_buffer_at(out), sr_buffer_len(out));
    if (is_interim && (!sr_client_informs(e, x) || is_unread(st->session, made->len)))
        return SR_RESPONSE_OK;
    if (!submit(st, h->status, out, is_interim, r.framing != SR_FRAMING_NONE))
        return SR_RESPONSE_NO_MEMORY;
    sr_session_due(st->session);
    if (is_interim) {
        sr_counters_add(&e->row->counters.responses[0], 1);
        return SR_RESPONSE_OK;
    }
    st->answered = true;
    x->left = sr_response_left(&r);
    sr_account_head(x, h->status, made->len);
    return SR_RESPONSE_OK;
}

/* --- the body --- */

void sr_h2_piece(sr_engine *e, sr_exchange *x, sr_bytes body, bool last)
{
    sr_h2_stream *st = x->stream;
    x->active_at = e->now;
    if (x->left != SR_LENGTH_UNKNOWN) {
        body.len = body.len < x->left ? body.len : (size_t)x->left;
        x->left -= body.len;
    }
    struct iovec iov = {(char *)(uintptr_t)body.at, body.len};
    if (body.len && !sr_send_keep(e, &st->out, &iov, 1, 0, SR_KEEP_BY_SIZE)) {
        x->broken = true; /* and so reset */
        x->left = 0;
    }
    (void)last;
    more(st);
}

void sr_h2_file(sr_engine *e, sr_exchange *x, const sr_content *content)
{
    sr_h2_stream *st = x->stream;
    uint64_t length = content->length;
    x->active_at = e->now;
    if (x->left && sr_stream_has_enough(e, x, content->fd)) {
        x->broken = true;
        x->left = 0;
        more(st);
    }
    if (!x->left || x->left == SR_LENGTH_UNKNOWN ||
        !sr_send_keep(e, &st->out, NULL, 0, 0, SR_KEEP_IN_MEMORY)) {
        sr_descriptors_discard(content->fd);
        sr_parts_free(content->parts);
        return;
    }
    if (length > x->left)
        length = x->left;
    x->left = content->parts ? 0 : x->left - length;
    sr_output_file(st->out, content->fd, content->offset, length);
    st->out->parts = content->parts;
    more(st);
}

sr_output *sr_h2_output(const sr_exchange *x)
{
    const sr_h2_stream *st = x->stream;
    return st->out;
}

bool sr_h2_settle(sr_engine *e, sr_exchange *x)
{
    const sr_h2_stream *st = x->stream;
    sr_deadline_clear_exchange(e, x); /* the client is waited for, not the application */
    sr_session_due(st->session);
    return true;
}

void sr_h2_end(sr_engine *e, sr_exchange *x)
{
    sr_h2_stream *st = x->stream;
    x->back_at = e->now;
    if (x->broken || (x->left && x->left != SR_LENGTH_UNKNOWN)) { /* shorter than its Content-Length */
        sr_h2_cut(e, x);
        return;
    }
    sr_deadline_clear_exchange(e, x);
    sr_accesslog_keep(e, x);
    sr_stream_drop_request(st);
    st->last = true;
    if (st->finished)
        sr_stream_finish(st);
    else
        more(st);
}

void sr_h2_more(sr_engine *e, sr_exchange *x)
{
    sr_h2_stream *st = x->stream;
    (void)e;
    if (st->withheld)
        sr_session_submitted(st->session,
                             nghttp2_session_consume_stream(st->session->ng, st->id, st->withheld));
    st->withheld = 0;
    sr_session_due(st->session);
}

void sr_h2_cut(sr_engine *e, sr_exchange *x)
{
    sr_h2_stream *st = x->stream;
    x->back_at = e->now;
    x->broken = true;
    sr_accesslog_keep(e, x);
    if (!st->finished ||
        (!st->ended && !st->detached)) /* something is missing, or the client may go on sending */
        sr_session_reset(st->session, st->id, NGHTTP2_INTERNAL_ERROR);
    if (st->finished) {
        sr_stream_finish(st);
        return;
    }
    sr_session_due(st->session);
    sr_stream_over(st, SR_OVER_ABORTED);
}

#endif
