#ifdef SR_HTTP2

#include "numbers.h"

enum { KNOWN = 256 }; /* streams, of which the bits are kept */

/* How far the stream is behind the newest, in streams of clients. */
static uint32_t back(const sr_session *s, int32_t id)
{
    return (uint32_t)(s->newest - id) / 2;
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
    return i < KNOWN && bits[i / 64] >> i % 64 & 1;
}

static void shift(uint64_t *bits, uint32_t by)
{
    if (by >= KNOWN)
        memset(bits, 0, KNOWN / 8);
    for (; by && by < KNOWN; by--)
        for (int i = 3; i >= 0; i--)
            bits[i] = bits[i] << 1 | (i ? bits[i - 1] >> 63 : 0);
}

static void note(sr_session *s, int32_t id)
{
    uint32_t by = ((uint32_t)(id - s->newest) + 1) / 2;
    shift(s->opened, by);
    shift(s->reset, by);
    s->opened[0] |= 1;
    s->newest = id;
}

void sr_numbers_reset(sr_session *s, int32_t id)
{
    uint32_t i = back(s, id);
    if (id <= s->newest && i < KNOWN)
        s->reset[i / 64] |= UINT64_C(1) << i % 64;
}

uint32_t sr_numbers_wrong(sr_session *s, const sr_framehead *f)
{
    int32_t id = f->stream;
    if (f->type == NGHTTP2_PRIORITY && f->len == 5)
        return !id || sr_framehead_stream(f->payload.at) == id ? NGHTTP2_PROTOCOL_ERROR : 0;
    if (!(id & 1) || (f->type != NGHTTP2_HEADERS && f->type != NGHTTP2_DATA))
        return 0;
    if (id > s->newest) {
        if (f->type == NGHTTP2_HEADERS)
            note(s, id);
        return 0;
    }
    uint32_t i = back(s, id);
    if (i >= KNOWN)
        return 0;
    if (!has_bit(s->opened, i))
        return f->type == NGHTTP2_HEADERS ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_STREAM_CLOSED;
    bool is_open = nghttp2_session_find_stream(s->ng, id);
    return is_open || has_bit(s->reset, i) ? 0 : NGHTTP2_STREAM_CLOSED;
}

#endif
