#ifndef SR_STARTED_H
#define SR_STARTED_H
/*
 * started: when a proxy in front has received a request. It says so in X-Request-Start or X-Queue-Start, as
 * seconds (nginx: "t=${msec}"), milliseconds (Heroku) or microseconds (Apache: "t=%t") since 1970; how large
 * the number is tells which.
 *
 * Pure: no allocation, no I/O, no clock. Any thread. What is malformed, in the future or long past says
 * nothing: the clock of the proxy may be wrong, and nothing but a number in a log depends on it.
 */
#include "request.h"

/* ns; who has received a request longer ago has another time than we */
#define SR_STARTED_MAX (INT64_C(3600) * 1000000000)

/*
 * For a complete request that came from a trusted peer at `wall`, ns since 1970: how many ns before that the
 * proxy has received it; 0: it does not say. Of several fields of one name the last counts, and of a list the
 * last element: that is the one which the peer has written.
 */
int64_t sr_started_before(const sr_request *r, const char *base, int64_t wall);

#endif
