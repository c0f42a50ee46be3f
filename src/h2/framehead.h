#ifndef SR_H2_FRAMEHEAD_H
#define SR_H2_FRAMEHEAD_H
/* framehead: the head of a frame of HTTP/2 (RFC 9113 4.1), before nghttp2 reads it. Pure. */
#include "../base/bytes.h"

enum {
    SR_FRAME_HEAD = 9,    /* bytes */
    SR_FRAME_MAX = 16384, /* bytes of a payload: SETTINGS_MAX_FRAME_SIZE as it is at the beginning */
};

typedef struct sr_framehead {
    uint32_t len; /* of the payload, as the head says */
    uint8_t type, flags;
    int32_t stream;
    sr_bytes payload; /* what is here of it */
} sr_framehead;

/* The number of a stream in four bytes. */
static inline int32_t sr_framehead_stream(const char *from)
{
    const unsigned char *at = (const unsigned char *)from;
    return (int32_t)((uint32_t)(at[0] & 127) << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

/* Of bytes that begin with its head, which is complete. */
static inline sr_framehead sr_framehead_of(sr_bytes in)
{
    const unsigned char *at = (const unsigned char *)in.at;
    uint32_t len = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2];
    size_t here = in.len - SR_FRAME_HEAD;
    return (sr_framehead){len, at[3], at[4], sr_framehead_stream(in.at + 5),
                          sr_bytes_of(in.at + SR_FRAME_HEAD, here < len ? here : len)};
}

#endif
