#ifndef FIELDS_H
#define FIELDS_H
/* fields: a request that has these header fields. */
#include "../../src/http1/head.h"

#include "guard.h"

#include <stdio.h>

/*
 * Each ends in CRLF. Returns where the head lies, up to the next call; NULL: it was refused, r->why says why.
 */
static inline const char *request_of(sr_request *r, const char *fields)
{
    static char head[70000];
    sr_request_limits limits = {.line = 8192, .head = 65536, .fields = 100};
    int len = snprintf(head, sizeof head, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    const char *at = guarded(head, (size_t)len);
    sr_request_init(r);
    return sr_request_feed(r, &limits, at, (size_t)len) == SR_PARSE_DONE ? at : NULL;
}

#endif
