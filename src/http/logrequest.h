#ifndef SR_LOGREQUEST_H
#define SR_LOGREQUEST_H
/*
 * logrequest: what a complete request says of itself to a line of an access log, from its bytes. The values are those of
 * the %env that an application is given for it (xs/env.c, xs/forwarded.c), so that a line is the same wherever it is made,
 * as long as the application has not changed its %env.
 *
 * Owner: the caller of all that it points to; sr_logrequest_free frees the scratch. Thread: none of its own. No I/O.
 * Failure: without memory a value counts as none.
 */
#include "forwarded.h"
#include "logformat.h"

typedef struct sr_logrequest {
    const sr_request *request;
    const char *base;       /* bytes that its spans point into */
    uint64_t body_length;   /* CONTENT_LENGTH, where there is a body */
    sr_bytes address;       /* of the client */
    sr_bytes server_name;   /* of the listener */
    sr_bytes server_port;   /* likewise */
    sr_forwarded forwarded; /* what a trusted proxy has said, `said` */
    bool said;

    sr_buffer scratch; /* private; zeroed at first */
} sr_logrequest;

/* Of the kinds up to SR_LOG_PORT, and SR_LOG_IN. Good until the next call. NULL at: a request has no such value. */
sr_bytes sr_logrequest_get(sr_logrequest *r, const sr_logitem *item);

void sr_logrequest_free(sr_logrequest *r);

#endif
