#ifndef SR_SLOW_H
#define SR_SLOW_H
/*
 * slow: requests that run in the application for longer than --slow-log. Each is counted and reported once,
 * and goes on; the generation of its worker writes the report to the log, with the stack
 * (lib/Sirius/Process/SlowLog.pm). Without a supervisor the report is a line of the log.
 *
 * At most `per_minute` reports are made in a minute. One line then counts those that were left out.
 *
 * A request costs nothing here: a timer makes the edge look at the rings of its workers when the first of
 * them may be due, and once in the time of --slow-log, while it has a request.
 * Trust: a worker can only spoil what is said of its own request.
 */
#include "edge.h"

/* per_minute: of this edge; at least 2. Returns 0 or errno. */
int sr_slow_open(sr_edge *ed, int64_t limit_ns, uint32_t per_minute);

/* There is a request, which mend.c looks at for the first time a few ms after it came. */
void sr_slow_begin(sr_edge *ed);

void sr_slow_timer(sr_edge *ed); /* the timer has fired */
void sr_slow_end(sr_edge *ed);   /* the edge ends: tells what was left out */

#endif
