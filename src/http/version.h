#ifndef SR_VERSION_H
#define SR_VERSION_H
/* version: of HTTP, as a request has it. Pure; any thread. */
#include "../base/bytes.h"

typedef enum sr_version {
    SR_HTTP_1_0 = 10,
    SR_HTTP_2 = 20,
    SR_HTTP_1_1 = 11, /* 1.2 to 1.9 count as 1.1 (RFC 9110 2.5) */
} sr_version;

/* As SERVER_PROTOCOL and the access log have it. */
static inline sr_bytes sr_version_text(sr_version v)
{
    switch (v) {
    case SR_HTTP_1_0:
        return SR_BYTES("HTTP/1.0");
    case SR_HTTP_2:
        return SR_BYTES("HTTP/2.0");
    case SR_HTTP_1_1:
        break;
    }
    return SR_BYTES("HTTP/1.1");
}

#endif
