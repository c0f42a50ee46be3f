#ifndef SR_LOGREQUEST_H
#define SR_LOGREQUEST_H
/*
 * values: the values of a log line that come from the bytes of a complete request. They equal those of
 * the %env that the application gets (xs/env.c, xs/forwarded.c), so that a line is the same wherever it is
 * made, as long as the application has not changed its %env.
 *
 * Owner: everything it points to is the caller's; sr_logrequest_free frees the scratch. Thread: one at a
 * time. No I/O.
 * Failure: a value for which there is no memory is missing.
 */
#include "../http/forwarded.h"
#include "format.h"

typedef struct sr_logrequest {
    const sr_request *request;
    const char *base;       /* bytes that its spans point into */
    uint64_t body_length;   /* CONTENT_LENGTH, where there is a body */
    sr_bytes address;       /* of the client */
    sr_bytes server_name;   /* of the listener */
    sr_bytes server_port;   /* likewise */
    sr_forwarded forwarded; /* what trusted proxies have said; valid if `said` */
    bool said;
    bool trusted;           /* its X-Request-Id counts: a trusted peer has sent it */
    uint64_t nonce, number; /* to make an id where there is none (traced.h); number 0: make none */

    sr_buffer scratch; /* private; zeroed at first */
} sr_logrequest;

/*
 * The value of an item of the kinds up to SR_LOG_PORT, and SR_LOG_IN; valid until the next call. NULL at:
 * there is none.
 */
sr_bytes sr_logrequest_get(sr_logrequest *r, const sr_logitem *item);

void sr_logrequest_free(sr_logrequest *r);

#endif
