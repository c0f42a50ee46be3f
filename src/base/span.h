#ifndef SR_SPAN_H
#define SR_SPAN_H
/*
 * span: a run of bytes as an offset and a length, so that it stays valid when the bytes move. Who has one
 * knows the address that it counts from. No allocation, no I/O; any thread.
 */
#include "bytes.h"

typedef struct sr_span {
    uint32_t at, len;
} sr_span;

static inline sr_bytes sr_span_in(const char *base, sr_span s)
{
    return (sr_bytes){base + s.at, s.len};
}

#endif
