#ifndef SR_FRAMING_H
#define SR_FRAMING_H
/*
 * framing: what the fields of a request mean for its message: where the body ends, whether the connection
 * stays, what is expected (RFC 9112 6, 9; RFC 9110 7.6.1, 7.8, 10.1.1). Part of request.c's work, on its
 * object.
 */
#include "request.h"

typedef enum sr_seen { /* bits of sr_request.seen */
                       SR_SEEN_HOST = 1 << 0,
                       SR_SEEN_LENGTH = 1 << 1,
                       SR_SEEN_CODING = 1 << 2,         /* Transfer-Encoding */
                       SR_SEEN_UNKNOWN_CODING = 1 << 3, /* and it is not "chunked" alone */
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
    SR_FIELD_DROP,    /* not for the application */
    SR_FIELD_REFUSED, /* r->status and r->why say it */
} sr_field_use;

/* Note one field whose syntax was checked. Host gets the value of an absolute-form target instead of its own. */
sr_field_use sr_framing_field(sr_request *r, const char *at, sr_field *field);

/*
 * One whose name has '_'. To an application X_Real_IP and X-Real-IP are one: HTTP_X_REAL_IP. A name that would pass for
 * a framing field is refused. The others are dropped, unless `limits` says that they are kept: then for what remains of
 * them behind sr_framing_decide no other spelling of the name is in fields[].
 */
sr_field_use sr_framing_underscored(sr_request *r, const sr_request_limits *limits, const char *at,
                                    const sr_field *field);

/* All fields are there: decide. False: r->status and r->why say why not. */
bool sr_framing_decide(sr_request *r, const char *at);

/* Returns false, for the caller to return. */
static inline bool sr_request_refuse(sr_request *r, int status, const char *why)
{
    r->status = status;
    r->why = why;
    return false;
}

#endif
