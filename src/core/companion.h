#ifndef SR_COMPANION_H
#define SR_COMPANION_H
/*
 * companion: the second star of a worker: a thread that drives the engine while the first is inside
 * application code.
 *
 * It never touches Perl and has every signal blocked. While its worker is busy it looks at e->call every
 * millisecond; when the same call is still running it takes the helm, takes the listeners and the exchange
 * out of the epoll set (so that new work goes to a worker that waits), and drives: it reads, flushes,
 * enforces time limits, and gives every connection with a complete request to the exchange. When the call
 * ends, the Perl thread writes e->nudge and waits for the helm at most for one step. When the worker is idle
 * the companion sleeps in a futex and costs nothing.
 *
 * Rules: e->call is written by the Perl thread only, odd while application code runs. e->parked is written by
 * the companion only. Everything else it touches, it touches with the helm.
 */
#include "engine.h"

int sr_companion_start(sr_engine *e); /* 0 or errno; without a companion the engine works, but unfairly */
void sr_companion_stop(
    sr_engine *e); /* joins; without the helm. Not in a forked child: there is no such thread */

#endif
