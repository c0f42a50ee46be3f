#ifndef SR_BODY_H
#define SR_BODY_H
/*
 * body: collects the body of a request, in memory up to a limit, beyond it in an unlinked temporary file.
 *
 * Owner: the exchange, from the moment that the body turns out not to be complete in the bytes that came
 * with its head until the request is put into the queue.
 * Failure: SR_BODY_BAD, with the status to refuse the request with.
 */
#include "../base/buffer.h"
#include "config.h"
#include "pace.h"

#define SR_BODY_TOO_LARGE "the request body is larger than max-body"

typedef struct sr_body {
    bool spooled;     /* the bytes are in fd, but for the last few, which are in mem until DONE */
    bool crowded;     /* set by the caller: to the file at once, as the connection has much in memory */
    uint64_t length;  /* bytes collected */
    uint64_t written; /* bytes of the file */
    uint64_t pieces;  /* in which they came */
    bool dear; /* those of the last call were so small that the caller should take fewer bytes at a time */
    uint64_t counted;  /* value of `received` when --body-rate was last looked at */
    uint64_t received; /* bytes read from the socket, framing included: what --body-rate is applied to */
    sr_pace pace;      /* of the bytes that have come, since the head was complete; the caller's */
    sr_buffer mem;
    int fd;          /* -1 until spooled; owned */
    int status;      /* after SR_BODY_BAD: 400, 413, 431, 500, 503 or 507 */
    int err;         /* errno of the temporary file; 0: something else has failed */
    const char *why; /* static */
} sr_body;

typedef enum sr_body_result { SR_BODY_MORE, SR_BODY_DONE, SR_BODY_BAD } sr_body_result;

void sr_body_free(sr_body *b); /* NULL is fine */

/* Whether some of so many bytes more go to the file. */
bool sr_body_spools(const sr_body *b, const sr_config *config, size_t more);

/*
 * The file is the caller's from now on, who calls sr_spools_gave with its length when it is closed. -1: there
 * is none.
 */
int sr_body_take(sr_body *b);

/* Takes bytes of the body, without their framing. MORE or BAD. */
sr_body_result sr_body_store(sr_body *b, const sr_config *config, sr_bytes data);
sr_body_result sr_body_done(sr_body *b); /* it is complete: DONE or BAD */

/* It is refused for this. Returns SR_BODY_BAD, for the caller to return. */
sr_body_result sr_body_refuse(sr_body *b, int status, const char *why);

#endif
