#ifndef SR_CONDITION_H
#define SR_CONDITION_H
/*
 * condition: conditional requests (RFC 9110 13): whether a client that asks with GET or HEAD gets a
 * representation, is told that it has it already, or that the condition does not hold. Pure; any thread.
 */
#include "request.h"

typedef struct sr_validators {
    sr_bytes etag;    /* strong, with its quotes */
    int64_t modified; /* Last-Modified in s since 1970; below 0: unknown */
    int64_t now;      /* s since 1970 */
} sr_validators;

typedef enum sr_condition {
    SR_CONDITION_NONE,         /* go on: none is given, or they hold */
    SR_CONDITION_NOT_MODIFIED, /* 304 */
    SR_CONDITION_FAILED,       /* 412 */
} sr_condition;

/* In the order of RFC 9110 13.2.2. If-Range is left out. */
sr_condition sr_condition_of(const sr_request *r, const char *base, const sr_validators *v);

/*
 * Whether Range may be answered with a part: there is no If-Range, or it names this very representation. A
 * date does so only if nothing can have changed within its second afterwards (RFC 9110 8.8.2.2, 13.1.5).
 */
bool sr_condition_if_range(const sr_request *r, const char *base, const sr_validators *v);

#endif
