#ifndef SR_CURSOR_H
#define SR_CURSOR_H
/* cursor: a place in bytes that lie in pieces, and what follows it. Owns nothing. Pure; any thread. */
#include "bytes.h"

#include <sys/uio.h>

typedef struct sr_cursor {
    const struct iovec *iov;
    int n;
    size_t skip; /* of the first */
} sr_cursor;

static inline void sr_cursor_skip(sr_cursor *c, size_t len)
{
    while (c->n > 0) {
        size_t left = c->iov->iov_len - c->skip;
        if (len < left) {
            c->skip += len;
            return;
        }
        len -= left;
        c->skip = 0;
        c->iov++;
        c->n--;
    }
}

/* What follows in the same piece; empty at the end, and where a piece is. */
static inline sr_bytes sr_cursor_here(const sr_cursor *c)
{
    return c->n > 0 ? sr_bytes_of((const char *)c->iov->iov_base + c->skip, c->iov->iov_len - c->skip)
                    : (sr_bytes){0};
}

/* How many bytes follow. Counts no further than to `most`: then there may be more than it says. */
static inline size_t sr_cursor_left(const sr_cursor *c, size_t most)
{
    size_t sum = 0;
    for (int i = 0; i < c->n && sum < most; i++)
        sum += c->iov[i].iov_len - (i ? 0 : c->skip);
    return sum;
}

/* Copies up to `most` bytes, and moves behind them. Returns how many. */
static inline size_t sr_cursor_copy(sr_cursor *c, void *to, size_t most)
{
    size_t done = 0;
    while (c->n > 0 && done < most) {
        size_t left = c->iov->iov_len - c->skip, some = left < most - done ? left : most - done;
        if (some)
            memcpy((char *)to + done, (const char *)c->iov->iov_base + c->skip, some);
        done += some;
        c->skip += some;
        if (some == left) {
            c->iov++;
            c->n--;
            c->skip = 0;
        }
    }
    return done;
}

#endif
