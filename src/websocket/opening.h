#ifndef SR_OPENING_H
#define SR_OPENING_H
/*
 * opening: the request that opens a WebSocket: by HTTP/1.1 (RFC 6455 4.2), or extended CONNECT (RFC 8441 5).
 * Pure; any thread.
 */
#include "../http/request.h"

enum { SR_OPENING_ACCEPT = 28 }; /* bytes of Sec-WebSocket-Accept */

typedef struct sr_opening {
    sr_bytes key;    /* Sec-WebSocket-Key */
    int status;      /* to refuse it with: 400, 426; 0: it is valid */
    const char *why; /* static */
} sr_opening;

/* Whether the client asks for a WebSocket by HTTP/1.1. */
bool sr_opening_asks(const sr_request *r, const char *base);

/* Checks a request of which sr_opening_asks is true, or an extended CONNECT with :protocol websocket. */
void sr_opening_check(sr_opening *o, const sr_request *r, const char *base);

/*
 * Whether no page of another origin asks for it: there is no Origin, or it is this scheme, host and port. A
 * browser sends cookies with an opening of any page (RFC 6455 10.2).
 */
bool sr_opening_is_own(const sr_request *r, const char *base, bool is_https, sr_bytes host);

/* The value of Sec-WebSocket-Accept for a valid key. */
void sr_opening_accept(char to[SR_OPENING_ACCEPT], sr_bytes key);

#endif
