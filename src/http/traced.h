#ifndef SR_TRACED_H
#define SR_TRACED_H
/*
 * traced: the names under which others know a request: its id (X-Request-Id) and the span of a distributed
 * trace that it is in (traceparent of W3C Trace Context).
 *
 * Pure: no allocation, no I/O. Any thread. What is valid is short printable ASCII without spaces and quotes,
 * so it needs no escaping in a log. What is not valid, or is there twice, counts as absent.
 */
#include "request.h"

enum {
    SR_REQUEST_ID_MAX = 200,  /* as Heroku's router and Rails allow */
    SR_REQUEST_ID_MADE = 32,  /* digits of an id that the server makes */
    SR_TRACEPARENT_MAX = 128, /* version 00 has 55; a later one may have more */
};

/* The request id that a trusted peer has set: letters, digits and -_.~+/=:@ only. at NULL: there is none. */
sr_bytes sr_traced_id(const sr_request *r, const char *base);
bool sr_traced_is_id(sr_bytes value); /* whether that field has such a value */

/* The value of traceparent. at NULL: there is none. */
sr_bytes sr_traced_parent(const sr_request *r, const char *base);

/* Makes the id of request `number` of the process that has drawn `nonce`, in hexadecimal digits. */
sr_bytes sr_traced_make(char out[SR_REQUEST_ID_MADE], uint64_t nonce, uint64_t number);

#endif
