#ifndef SR_COMPANION_H
#define SR_COMPANION_H
/*
 * companion: the second star of a worker: a thread that drives the engine while the first is inside
 * application code.
 *
 * It never touches Perl and has every signal blocked. While its worker is busy it looks at e->turn, every millisecond
 * when calls are slow, every 4 or 10 when none or few are; when the same request is still with the application it takes
 * the helm, takes the listeners and the exchange out of the epoll set (so that new work goes to a worker that waits;
 * while none waits it accepts itself, so that what waits is seen and bounded), and drives: it reads, flushes, enforces time limits (also that of
 * the request which is with the application, see overdue.c), and gives every connection with a complete request to
 * the exchange. The Perl thread gets the helm whenever it wants it, at most one event later, and when the turn is
 * over it writes e->nudge. When the worker is idle the companion sleeps in a futex and costs nothing.
 *
 * Rules: e->turn and e->wants are written by the Perl thread only, e->turn odd from the moment a request is handed
 * out until the next is asked for. e->parked, e->driving and e->asks are written by the companion only. Everything else it
 * touches, it touches with the helm.
 */
#include "engine.h"

int sr_companion_start(sr_engine *e); /* 0 or errno; without a companion the engine works, but unfairly */
void sr_companion_stop(
    sr_engine *e); /* joins; without the helm. Not in a forked child: there is no such thread */

#endif
