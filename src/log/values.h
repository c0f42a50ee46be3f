#ifndef SR_LOGVALUES_H
#define SR_LOGVALUES_H
/*
 * values: what a log line says of a request, out of one struct. Of a complete request the values equal those
 * of the %env that the application gets (xs/env.c, xs/forwarded.c), so that a line is the same wherever it is
 * made, as long as the application has not changed its %env. Of a refused one they are what the client has
 * sent.
 *
 * Owner: everything it points to is the caller's; sr_logvalues_free frees the scratch. Thread: one at a
 * time. No I/O.
 * Failure: a value for which there is no memory is missing.
 */
#include "../http/forwarded.h"
#include "format.h"

typedef struct sr_logvalues {
    const sr_request *request; /* NULL: not even the method of a refused one is known */
    const char *base;          /* bytes that its spans point into */
    bool refused;              /* it may not be complete, and its values are as received */
    sr_bytes line;             /* if `refused`: the first line that was received */
    uint64_t body_length;      /* CONTENT_LENGTH, where there is a body */
    sr_bytes address;          /* of the client */
    sr_bytes server_name;      /* of the listener */
    sr_bytes server_port;      /* likewise */
    sr_forwarded forwarded;    /* what trusted proxies have said; valid if `said` */
    bool said;
    bool trusted;           /* its X-Request-Id counts: a trusted peer has sent it */
    uint64_t nonce, number; /* to make an id where there is none (http/traced.h); number 0: make none */
    sr_bytes tls;           /* facts of its connection (share/facts.h) */
    sr_bytes response;      /* the head of its response; a body may follow */
    sr_bytes rule, reason;  /* why it was refused: the rule that it has broken, and the name of the reason */

    sr_buffer scratch; /* private; zeroed at first */
} sr_logvalues;

/* The value of an item of a kind before SR_LOG_CUSTOM; valid until the next call. NULL at: there is none. */
sr_bytes sr_logvalues_get(sr_logvalues *v, const sr_logitem *item);

void sr_logvalues_free(sr_logvalues *v);

#endif
