#ifndef SR_STATUS_H
#define SR_STATUS_H
/* status: reason phrases (RFC 9110 15, the IANA registry). Pure; any thread. */
#include "../base/bytes.h"

/* The phrase for a code; "Unknown" if it has none. Never empty. */
sr_bytes sr_status_reason(int status);

/* 1xx, 204 and 304 never have a body (RFC 9110 6.4.1; 9112 6.3). */
static inline bool sr_status_bodiless(int status)
{
    return status < 200 || status == 204 || status == 304;
}

#endif
