#ifndef SR_FRAMING_H
#define SR_FRAMING_H
/*
 * framing: what the fields of a request mean for its message: where the body ends, whether the connection is
 * kept, what is expected (RFC 9112 6, 9; RFC 9110 7.6.1, 7.8, 10.1.1). Called by head.c, and of HTTP/2 by
 * h2/request.c.
 */
#include "head.h"

typedef enum sr_seen { /* bits of sr_request.seen */
                       SR_SEEN_HOST = 1 << 0,
                       SR_SEEN_LENGTH = 1 << 1,
                       SR_SEEN_CODING = 1 << 2,         /* Transfer-Encoding */
                       SR_SEEN_UNKNOWN_CODING = 1 << 3, /* and it is not just "chunked" */
                       SR_SEEN_TYPE = 1 << 4,
                       SR_SEEN_EXPECT = 1 << 5,
                       SR_SEEN_BAD_EXPECT = 1 << 6,
                       SR_SEEN_CLOSE = 1 << 7, /* options of Connection */
                       SR_SEEN_KEEP_ALIVE = 1 << 8,
                       SR_SEEN_UPGRADE_OPTION = 1 << 9,
                       SR_SEEN_UPGRADE = 1 << 10, /* the field */
                       SR_SEEN_WEBSOCKET = 1 << 11,
                       SR_SEEN_BAD_WEBSOCKET = 1 << 12, /* a Sec-WebSocket-Version other than 13 */
                       SR_SEEN_UNDERSCORE = 1 << 13,    /* a field with '_' was kept */
} sr_seen;

typedef enum sr_field_use {
    SR_FIELD_KEEP,
    SR_FIELD_DROP,    /* the application must not see it */
    SR_FIELD_REFUSED, /* r->status and r->why say why */
} sr_field_use;

/*
 * Notes a field whose syntax was checked. The value of Host is replaced by the authority of an absolute-form
 * target.
 */
sr_field_use sr_framing_field(sr_request *r, const char *at, sr_field *field);

/*
 * The same for a field whose name has '_'. To an application X_Real_IP and X-Real-IP are the same,
 * HTTP_X_REAL_IP. A name that could pass for a framing field is refused. Others are dropped, unless `limits`
 * says to keep them; then sr_framing_decide removes those of which another spelling is in fields[].
 */
sr_field_use sr_framing_underscored(sr_request *r, const sr_request_limits *limits, const char *at,
                                    const sr_field *field);

/* All fields were noted: decides about the message. False: refused, r->status and r->why say why. */
bool sr_framing_decide(sr_request *r, const char *at);

/* Refuses the request. Returns false, for the caller to return. */
static inline bool sr_request_refuse(sr_request *r, int status, const char *why)
{
    r->status = status;
    r->why = why;
    return false;
}

#endif
