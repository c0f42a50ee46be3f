#ifndef SR_BODY_H
#define SR_BODY_H
/*
 * body: a request body while it is collected: in memory up to a limit, past it in an unlinked temporary file.
 *
 * Owner: the connection, from the moment the body is known not to be whole in the first bytes until it is
 * handed to the application. Lock: the helm.
 */
#include "../base/buffer.h"
#include "../http/chunked.h"
#include "config.h"

typedef struct sr_body {
    bool chunked;
    bool spooled;       /* the bytes are in fd, mem is empty */
    sr_chunked decoder; /* when chunked */
    uint64_t left;      /* not chunked: bytes still to come */
    uint64_t length;    /* bytes collected */
    uint64_t window;    /* value of `length` on the wire when the current rate window began */
    uint64_t received;  /* bytes taken from the wire, framing included: what the rate is judged by */
    sr_buffer mem;
    int fd;          /* -1 until spooled; owned */
    int status;      /* after SR_BODY_BAD: 400, 413, 431, 507 or 500 */
    int err;         /* errno of the temporary file; 0: it was something else */
    const char *why; /* static */
} sr_body;

typedef enum sr_body_result { SR_BODY_MORE, SR_BODY_DONE, SR_BODY_BAD } sr_body_result;

sr_body *sr_body_new(
    const sr_request *r);      /* for SR_BODY_LENGTH with length > 0, or SR_BODY_CHUNKED; NULL: no memory */
void sr_body_free(sr_body *b); /* NULL is fine */

/* Takes body bytes from `in`; *used tells how many belong to this body. */
sr_body_result sr_body_feed(sr_body *b, const sr_config *config, sr_bytes in, size_t *used);

#endif
