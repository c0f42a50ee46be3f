#include "put.h"

#include "../conn/account.h"
#include "../conn/client.h"
#include "../conn/extra.h"
#include "../conn/joined.h"
#include "../conn/send.h"
#include "../http1/write.h"
#include "../net/descriptors.h"

#include <unistd.h>

/* bytes that a client has not read; above this interim responses are dropped */
#define INTERIM_MAX (64u * 1024)

/* What goes to this connection next, to append to. */
static inline sr_buffer *joined(sr_engine *e, sr_conn *c)
{
    if (e->joined.of && e->joined.of != c)
        sr_joined_flush(e);
    e->joined.of = c;
    return &e->joined.bytes;
}

/* --- heads --- */

static sr_response_error write_final(sr_engine *e, sr_exchange *x, const sr_head *h, sr_response *r,
                                     sr_buffer *out)
{
    sr_response_error err = sr_response_begin(r, h->status, x->is_head, sr_engine_keeps(e, x) && !h->close);
    if (!err && !sr_write_status(out, h->status))
        err = SR_RESPONSE_NO_MEMORY;
    if (!err)
        err = sr_extra_fields(e, x, r, h, out);
    return err ? err : sr_write_end(r, (sr_version)x->version, out, h->length, e->date, e->config.server);
}

static sr_response_error write_interim(const sr_head *h, sr_buffer *out)
{
    if (!sr_informational_status(h->status))
        return SR_RESPONSE_BAD_STATUS;
    if (!sr_write_status(out, h->status))
        return SR_RESPONSE_NO_MEMORY;
    sr_response_error err = sr_informational_fields(out, h->fields);
    return !err && !sr_buffer_add(out, "\r\n", 2) ? SR_RESPONSE_NO_MEMORY : err;
}

static void send_interim(sr_engine *e, sr_exchange *x)
{
    sr_conn *c = x->conn;
    if (!sr_client_informs(e, x) || (c->out && sr_output_pending(c->out) > INTERIM_MAX)) {
        sr_joined_forget(&e->joined);
        return;
    }
    x->active_at = e->now;
    sr_joined_flush(e);
    sr_counters_add(&e->row->counters.responses[0], 1);
    x->sent_from = x->conn->sent;
    x->interim_pending = c->out != NULL;
}

/*
 * What is known of the response now. A close without a reset could make one to HTTP/1.0 look complete (RFC
 * 9112 8).
 */
static void decided(sr_exchange *x, const sr_response *r, size_t len)
{
    bool is_old = x->version == SR_HTTP_1_0;
    x->keep_alive = r->keep_alive;
    x->chunked = sr_write_chunked(r, (sr_version)x->version);
    x->left = sr_response_left(r);
    if (is_old)
        x->cut_by_reset = true;
    if (r->framing == SR_FRAMING_OPEN && is_old && !x->conn->borrowed)
        sr_conn_resets(x->conn);
    sr_account_head(x, r->status, len);
}

sr_response_error sr_h1_head(sr_engine *e, sr_exchange *x, const sr_head *h, sr_bytes *made)
{
    bool is_interim = h->status < 200;
    sr_response r;
    sr_buffer *out = joined(e, x->conn);
    size_t from = sr_buffer_len(out);
    sr_response_error err = is_interim ? write_interim(h, out) : write_final(e, x, h, &r, out);
    if (err) {
        out->end = out->from + from;
        return err;
    }
    *made = sr_bytes_of(sr_buffer_at(out) + from, sr_buffer_len(out) - from);
    if (is_interim)
        send_interim(e, x);
    else
        decided(x, &r, made->len);
    return SR_RESPONSE_OK;
}

void sr_h1_continue(sr_engine *e, sr_exchange *x)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct iovec iov = {(char *)text, sizeof text - 1};
    x->conn->gone = false;
    sr_send(e, x->conn, &iov, 1);
    if (!x->conn->gone)
        sr_counters_add(&e->row->counters.responses[0], 1);
}

/* --- bodies --- */

/* The piece in its framing. Returns how many of iov are used. */
static inline int frame(struct iovec iov[4], char size[18], sr_bytes body, bool chunked, bool last)
{
    int n = 0;
    if (body.len && chunked)
        iov[n++] = (struct iovec){size, sr_write_chunk_head(size, body.len)};
    if (body.len)
        iov[n++] = (struct iovec){(char *)(uintptr_t)body.at, body.len};
    if (body.len && chunked)
        iov[n++] = (struct iovec){"\r\n", 2};
    if (last && chunked)
        iov[n++] = (struct iovec){"0\r\n\r\n", 5};
    return n;
}

/* Appends it to what is joined. False: it is too long, or there is no memory for it. */
static inline bool join(sr_buffer *out, const struct iovec *iov, int n)
{
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len += iov[i].iov_len;
    if (len > SR_JOIN_MAX || sr_buffer_len(out) + len > SR_JOINED_MAX || !sr_buffer_reserve(out, len))
        return false;
    for (int i = 0; i < n; i++)
        sr_buffer_add(out, iov[i].iov_base, iov[i].iov_len);
    return true;
}

void sr_h1_piece(sr_engine *e, sr_exchange *x, sr_bytes body, bool last)
{
    sr_conn *c = x->conn;
    struct iovec iov[5], *first = iov + 1; /* the first place is for what is joined */
    char size[18];
    x->active_at = e->now;
    if (x->left != SR_LENGTH_UNKNOWN) { /* it is cut at the application's Content-Length */
        body.len = body.len < x->left ? body.len : (size_t)x->left;
        x->left -= body.len;
    }
    int n = frame(first, size, body, x->chunked, last);
    sr_buffer *out = joined(e, c);
    if (join(out, first, n)) {
        if (!last)
            return;
        n = 0;
    }
    if (sr_buffer_len(out)) {
        *--first = (struct iovec){sr_buffer_at(out), sr_buffer_len(out)};
        n++;
    }
    if (last && n)
        sr_send_last(e, c, first, n, x->keep_alive);
    else if (n)
        sr_send(e, c, first, n);
    sr_joined_forget(&e->joined);
}

void sr_h1_file(sr_engine *e, sr_exchange *x, const sr_content *content)
{
    sr_conn *c = x->conn;
    uint64_t length = content->length;
    x->active_at = e->now;
    if (!x->left || x->left == SR_LENGTH_UNKNOWN) {
        sr_descriptors_discard(content->fd);
        sr_parts_free(content->parts);
        return;
    }
    if (length > x->left)
        length = x->left;
    x->left = content->parts ? 0 : x->left - length;
    if (e->joined.of == c) {
        sr_bytes head = sr_bytes_of(sr_buffer_at(&e->joined.bytes), sr_buffer_len(&e->joined.bytes));
        sr_send_head_and_file(e, c, head, content->fd, content->offset, length, content->parts);
        sr_joined_forget(&e->joined);
    } else {
        sr_send_file(e, c, content->fd, content->offset, length);
    }
}
