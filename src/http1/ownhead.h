#ifndef SR_OWNHEAD_H
#define SR_OWNHEAD_H
/*
 * ownhead: the head of a response as an application writes it by itself to psgix.io, "HTTP/1.1 101 Switching
 * Protocols" and what follows. Pure; any thread. Failure: BAD, or NO_MEMORY of the caller's buffer as BAD.
 */
#include "../base/buffer.h"

enum { SR_OWNHEAD_MAX = 64 * 1024 }; /* bytes of a head */

typedef enum sr_ownhead_result {
    SR_OWNHEAD_MORE, /* it is not complete */
    SR_OWNHEAD_DONE,
    SR_OWNHEAD_BAD, /* it is none, or larger than SR_OWNHEAD_MAX, or its body is chunked */
} sr_ownhead_result;

typedef struct sr_ownhead {
    int status;
    size_t len; /* bytes of the head, with its empty line */
} sr_ownhead;

/*
 * Reads a head. The fields are appended to `fields` as lines "Name: value\r\n", but for those of HTTP/1.1
 * alone that response.h does not drop: Sec-WebSocket-Accept. Lines may end without CR.
 */
sr_ownhead_result sr_ownhead_read(sr_ownhead *a, sr_bytes in, sr_buffer *fields);

#endif
