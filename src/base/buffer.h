#ifndef SR_BUFFER_H
#define SR_BUFFER_H
/*
 * buffer: bytes that are appended at the end and taken from the front.
 *
 * Owner: the struct that embeds it. sr_buffer_free returns the memory and leaves the buffer empty and usable.
 * Thread: one at a time.
 * Failure: lack of memory only. A call that may allocate then returns false and leaves the buffer as it was.
 */
#include "bytes.h"

typedef struct sr_buffer {
    char *data;  /* malloc'ed, NULL while nothing was ever stored */
    size_t from; /* first byte not yet taken */
    size_t end;  /* one past the last byte stored */
    size_t cap;  /* bytes allocated at data */
} sr_buffer;

static inline void sr_buffer_init(sr_buffer *b)
{
    *b = (sr_buffer){0};
}
void sr_buffer_free(sr_buffer *b);

static inline size_t sr_buffer_len(const sr_buffer *b)
{
    return b->end - b->from;
}
static inline char *sr_buffer_at(const sr_buffer *b) /* NULL while nothing was ever stored */
{
    return b->data ? b->data + b->from : NULL; /* NULL + 0 is not defined before C2y */
}
static inline sr_bytes sr_buffer_bytes(const sr_buffer *b)
{
    return sr_bytes_of(b->data ? b->data + b->from : "", sr_buffer_len(b));
}

/* Makes space for at least `more` bytes after the last one; the stored bytes may move. */
bool sr_buffer_grow(sr_buffer *b, size_t more); /* the slow half of sr_buffer_reserve */
static inline bool sr_buffer_reserve(sr_buffer *b, size_t more)
{
    return b->cap - b->end >= more || sr_buffer_grow(b, more);
}
static inline bool sr_buffer_add(sr_buffer *b, const void *at, size_t len)
{
    if (!len)
        return true;
    if (!sr_buffer_reserve(b, len))
        return false;
    memcpy(b->data + b->end, at, len);
    b->end += len;
    return true;
}
static inline bool sr_buffer_add_bytes(sr_buffer *b, sr_bytes s)
{
    return sr_buffer_add(b, s.at, s.len);
}

/* Drops `len` bytes at the front; len <= sr_buffer_len(b). */
static inline void sr_buffer_take(sr_buffer *b, size_t len)
{
    b->from += len;
    if (b->from == b->end)
        b->from = b->end = 0;
}

/* Drops all bytes and keeps the memory. */
static inline void sr_buffer_reset(sr_buffer *b)
{
    b->from = b->end = 0;
}

#endif
