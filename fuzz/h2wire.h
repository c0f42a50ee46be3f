#ifndef FUZZ_H2WIRE_H
#define FUZZ_H2WIRE_H
/*
 * h2wire: a client of HTTP/2 as bytes (RFC 9113): it writes any frame, sound or not, into a buffer, and reads
 * what a server sends. What it has read lies by stream. A frame that no server may send makes it `wrong`.
 */
#include "fuzz.h"

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

enum { H2WIRE_STREAMS = 256, H2WIRE_FRAME = 16384, H2WIRE_BLOCK = 1 << 17, H2WIRE_IDS = 4096 };

static const char h2wire_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/* What has come on one stream */
typedef struct h2wire_reply {
    int32_t id;        /* 0: nothing has */
    int status;        /* of the final head; 0: it has not come */
    unsigned interims; /* heads before it */
    long xid;          /* its field X-Id; -1: there is none */
    long long length;  /* its Content-Length; -1: there is none */
    size_t head;       /* bytes of its fields */
    char *body;        /* owned */
    size_t len, cap;   /* of the body */
    size_t right;      /* so many bytes of it were judged. Of the caller */
    bool ended, reset; /* END_STREAM, RST_STREAM */
    uint32_t error;    /* of RST_STREAM */
} h2wire_reply;

typedef struct h2wire {
    nghttp2_hd_deflater *deflater;
    nghttp2_hd_inflater *inflater;
    char *out; /* to be sent. Owned */
    size_t out_len, out_cap;
    h2wire_reply replies[H2WIRE_STREAMS];
    unsigned n;
    char *block; /* of heads that continue. Owned */
    size_t block_len;
    int32_t block_id; /* 0: none does */
    bool block_ends;
    bool cancelled[H2WIRE_IDS]; /* by half of the number of the stream: what still comes on it is not kept */
    unsigned goaways, settings, pings, windows;
    int32_t last; /* of the last GOAWAY */
    uint32_t error;
    bool refused;      /* in HTTP/1.1, as the preface did not come */
    bool silent;       /* it does not answer PING */
    bool blind;        /* the tables of HPACK may differ: heads are not read */
    const char *wrong; /* static; NULL: nothing was */
} h2wire;

/* --- what it sends --- */

static inline void h2wire_bytes(h2wire *w, const void *at, size_t len)
{
    if (w->out_cap - w->out_len < len) {
        w->out_cap = w->out_len + len + 4096;
        w->out = realloc(w->out, w->out_cap);
        MUST(w->out);
    }
    if (len)
        memcpy(w->out + w->out_len, at, len);
    w->out_len += len;
}

/* So many bytes were sent. */
static inline void h2wire_sent(h2wire *w, size_t len)
{
    memmove(w->out, w->out + len, w->out_len - len);
    w->out_len -= len;
}

static inline void h2wire_32(char *to, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)(n >> (24 - 8 * i));
}

static inline uint32_t h2wire_number(const char *at)
{
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static inline void h2wire_frame(h2wire *w, uint8_t type, uint8_t flags, int32_t id, const void *at,
                                size_t len)
{
    char head[9] = {(char)(len >> 16), (char)(len >> 8), (char)len, (char)type, (char)flags};
    h2wire_32(head + 5, (uint32_t)id);
    h2wire_bytes(w, head, sizeof head);
    h2wire_bytes(w, at, len);
}

/* A frame with one number: RST_STREAM, WINDOW_UPDATE */
static inline void h2wire_with(h2wire *w, uint8_t type, int32_t id, uint32_t n)
{
    char payload[4];
    h2wire_32(payload, n);
    h2wire_frame(w, type, 0, id, payload, sizeof payload);
}

static inline void h2wire_setting(h2wire *w, uint16_t what, uint32_t value)
{
    char payload[6] = {(char)(what >> 8), (char)what};
    h2wire_32(payload + 2, value);
    h2wire_frame(w, NGHTTP2_SETTINGS, 0, 0, payload, sizeof payload);
}

static inline void h2wire_goaway(h2wire *w, int32_t last, uint32_t error)
{
    char payload[8];
    h2wire_32(payload, (uint32_t)last);
    h2wire_32(payload + 4, error);
    h2wire_frame(w, NGHTTP2_GOAWAY, 0, 0, payload, sizeof payload);
}

static inline nghttp2_nv h2wire_field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}

/* HEADERS and, if it is cut into parts of `most` bytes, CONTINUATION; most 0: in one */
static inline void h2wire_head(h2wire *w, int32_t id, uint8_t flags, const nghttp2_nv *nv, size_t n,
                               size_t most)
{
    static uint8_t block[H2WIRE_BLOCK];
    ssize_t len = nghttp2_hd_deflate_hd(w->deflater, block, sizeof block, nv, n);
    MUST(len >= 0);
    size_t all = (size_t)len, some = most && most < all ? most : all;
    some = some < H2WIRE_FRAME ? some : H2WIRE_FRAME;
    h2wire_frame(w, NGHTTP2_HEADERS, (uint8_t)(flags | (some == all ? NGHTTP2_FLAG_END_HEADERS : 0)), id,
                 block, some);
    for (size_t at = some; at < all; at += some) {
        some = all - at < some ? all - at : some;
        h2wire_frame(w, NGHTTP2_CONTINUATION, at + some == all ? NGHTTP2_FLAG_END_HEADERS : 0, id, block + at,
                     some);
    }
}

/* A request of this method and path */
static inline void h2wire_ask(h2wire *w, int32_t id, const char *method, const char *path, bool ends)
{
    const nghttp2_nv nv[] = {h2wire_field(":method", method), h2wire_field(":scheme", "http"),
                             h2wire_field(":path", path), h2wire_field(":authority", "a")};
    h2wire_head(w, id, ends ? NGHTTP2_FLAG_END_STREAM : 0, nv, 4, 0);
}

/* --- begin and end --- */

/* The preface, and SETTINGS that let any response come without a WINDOW_UPDATE if `wide`. */
static inline void h2wire_begin(h2wire *w, bool wide)
{
    *w = (h2wire){0};
    MUST(nghttp2_hd_deflate_new(&w->deflater, 4096) == 0 && nghttp2_hd_inflate_new(&w->inflater) == 0);
    h2wire_bytes(w, h2wire_preface, sizeof h2wire_preface - 1);
    if (!wide) {
        h2wire_frame(w, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
        return;
    }
    h2wire_setting(w, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 28);
    h2wire_with(w, NGHTTP2_WINDOW_UPDATE, 0, 1 << 30);
}

static inline void h2wire_free(h2wire *w)
{
    for (unsigned i = 0; i < w->n; i++)
        free(w->replies[i].body);
    if (w->deflater)
        nghttp2_hd_deflate_del(w->deflater);
    if (w->inflater)
        nghttp2_hd_inflate_del(w->inflater);
    free(w->out);
    free(w->block);
    *w = (h2wire){0};
}

/* --- what it reads --- */

/* What has come on this stream. NULL: nothing has */
static inline h2wire_reply *h2wire_find(h2wire *w, int32_t id)
{
    for (unsigned i = 0; i < w->n; i++)
        if (w->replies[i].id == id)
            return &w->replies[i];
    return NULL;
}

static inline void h2wire_forget(h2wire *w, int32_t id)
{
    h2wire_reply *r = h2wire_find(w, id);
    if (!r)
        return;
    free(r->body);
    *r = w->replies[--w->n];
}

static inline bool h2wire_ignores(const h2wire *w, int32_t id)
{
    return id / 2 >= H2WIRE_IDS || w->cancelled[id / 2];
}

/* RST_STREAM */
static inline void h2wire_cancel(h2wire *w, int32_t id, uint32_t error)
{
    h2wire_with(w, NGHTTP2_RST_STREAM, id, error);
    h2wire_forget(w, id);
    if (id / 2 < H2WIRE_IDS)
        w->cancelled[id / 2] = true;
}

static inline h2wire_reply *h2wire_reply_of(h2wire *w, int32_t id)
{
    h2wire_reply *r = h2wire_find(w, id);
    if (r || w->n == H2WIRE_STREAMS || h2wire_ignores(w, id))
        return r;
    r = &w->replies[w->n++];
    *r = (h2wire_reply){.id = id, .xid = -1, .length = -1};
    return r;
}

static inline void h2wire_blame(h2wire *w, const char *why)
{
    if (!w->wrong)
        w->wrong = why;
}

static inline bool h2wire_is(const uint8_t *at, size_t len, const char *name)
{
    return len == strlen(name) && memcmp(at, name, len) == 0;
}

static inline void h2wire_block(h2wire *w)
{
    h2wire_reply *r = h2wire_reply_of(w, w->block_id), ignored = {0};
    uint8_t *at = (uint8_t *)w->block;
    size_t left = w->block_len;
    int status = 0;
    bool trailers;
    r = r ? r : &ignored;
    trailers = r->status;
    r->ended = r->ended || w->block_ends;
    while (!w->blind) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(w->inflater, &nv, &flags, at, left, 1);
        if (n < 0) {
            h2wire_blame(w, "a head can't be read");
            return;
        }
        at += n;
        left -= (size_t)n;
        if (flags & NGHTTP2_HD_INFLATE_EMIT) {
            for (size_t i = 0; i < nv.namelen; i++)
                if (nv.name[i] >= 'A' && nv.name[i] <= 'Z')
                    h2wire_blame(w, "a name in upper case");
            char number[24] = "";
            memcpy(number, nv.value, nv.valuelen < sizeof number - 1 ? nv.valuelen : sizeof number - 1);
            if (h2wire_is(nv.name, nv.namelen, ":status"))
                status = atoi(number);
            else if (h2wire_is(nv.name, nv.namelen, "x-id"))
                r->xid = atol(number);
            else if (h2wire_is(nv.name, nv.namelen, "content-length"))
                r->length = atoll(number);
            else if (h2wire_is(nv.name, nv.namelen, "connection") ||
                     h2wire_is(nv.name, nv.namelen, "transfer-encoding") || *nv.name == ':')
                h2wire_blame(w, "a field that HTTP/2 has not");
            r->head += nv.namelen + nv.valuelen;
        }
        if (flags & NGHTTP2_HD_INFLATE_FINAL) {
            nghttp2_hd_inflate_end_headers(w->inflater);
            break;
        }
        if (!left && !(flags & NGHTTP2_HD_INFLATE_EMIT)) {
            h2wire_blame(w, "a head has no end");
            break;
        }
    }
    if (w->blind)
        status = 200;
    if (trailers || !status)
        h2wire_blame(w, "a head behind a head, or without status");
    if (status >= 200) {
        r->status = status;
        return;
    }
    r->interims++;
    r->xid = r->length = -1;
    r->head = 0;
    if (w->block_ends)
        h2wire_blame(w, "an interim head ends the stream");
}

/* A part of a header block */
static inline void h2wire_part(h2wire *w, const char *at, size_t len, bool last)
{
    w->block = realloc(w->block, w->block_len + len + 1);
    MUST(w->block);
    memcpy(w->block + w->block_len, at, len);
    w->block_len += len;
    if (!last)
        return;
    h2wire_block(w);
    w->block_len = 0;
    w->block_id = 0;
}

static inline void h2wire_data(h2wire *w, int32_t id, const char *at, size_t len, bool ends)
{
    h2wire_reply *r = h2wire_find(w, id);
    if (h2wire_ignores(w, id))
        return;
    if (!r || !r->status) {
        h2wire_blame(w, "DATA before a head");
        return;
    }
    if (r->cap - r->len < len) {
        r->cap = r->len * 2 + len + 4096;
        r->body = realloc(r->body, r->cap);
        MUST(r->body);
    }
    if (len)
        memcpy(r->body + r->len, at, len);
    r->len += len;
    r->ended = ends;
}

static inline void h2wire_one(h2wire *w, uint8_t type, uint8_t flags, int32_t id, const char *at, size_t len)
{
    h2wire_reply *r = id ? h2wire_find(w, id) : NULL;
    if (w->block_id && (type != NGHTTP2_CONTINUATION || id != w->block_id))
        h2wire_blame(w, "a frame within a header block");
    if (r && (r->ended || r->reset) && (type == NGHTTP2_DATA || type == NGHTTP2_HEADERS))
        h2wire_blame(w, "more of a response that is over");
    switch (type) {
    case NGHTTP2_DATA:
        h2wire_data(w, id, at, len, flags & NGHTTP2_FLAG_END_STREAM);
        return;
    case NGHTTP2_HEADERS:
        w->block_id = id;
        w->block_ends = flags & NGHTTP2_FLAG_END_STREAM;
        h2wire_part(w, at, len, flags & NGHTTP2_FLAG_END_HEADERS);
        return;
    case NGHTTP2_CONTINUATION:
        if (id != w->block_id)
            h2wire_blame(w, "CONTINUATION of nothing");
        else
            h2wire_part(w, at, len, flags & NGHTTP2_FLAG_END_HEADERS);
        return;
    case NGHTTP2_RST_STREAM:
        if (len != 4 || !(r = h2wire_reply_of(w, id)))
            return;
        r->reset = true;
        r->error = h2wire_number(at);
        return;
    case NGHTTP2_GOAWAY:
        w->goaways++;
        if (len < 8)
            return;
        /*
         * libnghttp2 counts refused streams in that of an error, when it was called before the last was sent
         */
        if (w->goaways > 1 && (int32_t)h2wire_number(at) > w->last && !h2wire_number(at + 4))
            h2wire_blame(w, "GOAWAY with a higher stream than before");
        w->last = (int32_t)h2wire_number(at);
        w->error = h2wire_number(at + 4);
        return;
    case NGHTTP2_SETTINGS:
        w->settings++;
        if (!(flags & NGHTTP2_FLAG_ACK))
            h2wire_frame(w, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, NULL, 0);
        return;
    case NGHTTP2_PING:
        w->pings++;
        if (!(flags & NGHTTP2_FLAG_ACK) && !w->silent)
            h2wire_frame(w, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, at, len);
        return;
    case NGHTTP2_WINDOW_UPDATE:
        w->windows++;
        return;
    default:
        h2wire_blame(w, "a frame that no server sends");
    }
}

/* Reads whole frames. Returns the bytes used. */
static inline size_t h2wire_feed(h2wire *w, const char *at, size_t len)
{
    size_t used = 0;
    w->refused = w->refused || (!w->settings && len >= 5 && memcmp(at, "HTTP/", 5) == 0);
    if (w->refused)
        return len;
    while (len - used >= 9) {
        const unsigned char *b = (const unsigned char *)at + used;
        size_t more = (size_t)b[0] << 16 | (size_t)b[1] << 8 | b[2];
        if (more > H2WIRE_FRAME)
            h2wire_blame(w, "a frame of more than 16,384 bytes");
        if (len - used < 9 + more)
            break;
        h2wire_one(w, b[3], b[4], (int32_t)(h2wire_number(at + used + 5) & INT32_MAX), at + used + 9, more);
        used += 9 + more;
    }
    return used;
}

#endif
