#ifndef FEED_H
#define FEED_H
/*
 * feed: hand the same bytes to a parser in pieces and compare what comes out. Each piece ends at the guard
 * page, and moves between two calls, as the contract of the parsers allows.
 */
#include "../../src/http1/chunked.h"
#include "../../src/http1/head.h"
#include "guard.h"
#include "tap.h"

/* ---- request ---- */

static const sr_request_limits feed_limits = {.line = 8192, .head = 65536, .fields = 100};

/* Pieces of `step` bytes after a first one of `first`; step 0: the rest at once. */
static inline sr_parse feed_request(sr_request *r, const sr_request_limits *limits, const char *at,
                                    size_t len, size_t first, size_t step)
{
    sr_request_init(r);
    size_t n = first < len ? first : len;
    for (;;) {
        sr_parse p = sr_request_feed(r, limits, guarded(at, n), n);
        if (p != SR_PARSE_MORE || n == len)
            return p;
        n = step && n + step < len ? n + step : len;
    }
}

static inline bool same_request(sr_parse p, const sr_request *a, sr_parse q, const sr_request *b)
{
    if (p != q)
        return false;
    if (p == SR_PARSE_MORE)
        return true;
    if (p == SR_PARSE_BAD)
        return a->status == b->status && strcmp(a->why, b->why) == 0;
    return memcmp(a, b, offsetof(sr_request, phase)) == 0 &&
           memcmp(a->fields, b->fields, a->n_fields * sizeof *a->fields) == 0;
}

/* Whole; byte by byte; split in two at every offset (every 97th of a long one). Leaves the whole's result. */
static inline bool splits_agree(sr_request *r, sr_parse *result, const sr_request_limits *limits,
                                const char *at, size_t len)
{
    static sr_request other;
    size_t stride = len > 3000 ? 97 : 1;
    *result = feed_request(r, limits, at, len, len, 0);
    sr_parse p = feed_request(&other, limits, at, len, 0, len > 3000 ? 41 : 1);
    if (!same_request(*result, r, p, &other)) {
        printf("# byte by byte: %d %d %s\n", (int)p, other.status, other.why ? other.why : "");
        return false;
    }
    for (size_t i = 1; i < len; i += stride) {
        p = feed_request(&other, limits, at, len, i, 0);
        if (!same_request(*result, r, p, &other)) {
            printf("# split at %zu: %d %d %s\n", i, (int)p, other.status, other.why ? other.why : "");
            return false;
        }
    }
    return true;
}

/* ---- chunked ---- */

typedef struct feed_body {
    sr_chunked c;
    sr_chunked_result result;
    size_t used;   /* of all bytes fed */
    uint64_t size; /* body bytes */
    uint64_t sum;  /* and what they were */
} feed_body;

static inline void feed_piece(feed_body *b, const char *at, size_t len)
{
    do {
        size_t used;
        sr_bytes data;
        b->result = sr_chunked_feed(&b->c, sr_bytes_of(at, len), &used, &data);
        for (size_t i = 0; i < data.len; i++)
            b->sum = b->sum * 31 + (unsigned char)data.at[i];
        if (b->result == SR_CHUNKED_DATA && data.at + data.len != at + used)
            b->sum = ~b->sum; /* data are the last bytes used: says the header */
        b->size += data.len;
        b->used += used;
        at += used;
        len -= used;
    } while (b->result == SR_CHUNKED_DATA);
}

static inline void feed_chunked(feed_body *b, const char *at, size_t len, size_t first, size_t step)
{
    memset(b, 0, sizeof *b);
    sr_chunked_init(&b->c);
    size_t from = 0, n = first < len ? first : len;
    for (;;) {
        feed_piece(b, guarded(at + from, n - from), n - from);
        if (b->result != SR_CHUNKED_MORE || n == len)
            return;
        from = n;
        n = step && n + step < len ? n + step : len;
    }
}

static inline bool same_body(const feed_body *a, const feed_body *b)
{
    return a->result == b->result && a->used == b->used && a->size == b->size && a->sum == b->sum &&
           a->c.status == b->c.status && a->c.left == b->c.left &&
           (a->result != SR_CHUNKED_BAD || strcmp(a->c.why, b->c.why) == 0);
}

static inline bool chunked_splits_agree(feed_body *b, const char *at, size_t len)
{
    feed_body other;
    size_t stride = len > 3000 ? 97 : 1;
    feed_chunked(b, at, len, len, 0);
    feed_chunked(&other, at, len, 0, 1);
    bool same = same_body(b, &other);
    for (size_t i = 1; same && i < len; i += stride) {
        feed_chunked(&other, at, len, i, 0);
        same = same_body(b, &other);
    }
    return same;
}

#endif
