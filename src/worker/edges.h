#ifndef SR_WORKER_EDGES_H
#define SR_WORKER_EDGES_H
/*
 * edges: which edges a worker knows. They come and go: the sleepers have their names, and each is asked for
 * its queue.
 *
 * Owner: the worker (worker.h). While it has a request, the line to the edge of that is left alone.
 */
#include "worker.h"

#define SR_WORKER_AGAIN_NS (100 * SR_MILLISECOND) /* before an edge that could not answer is asked again */

/* Looks at all edges. Returns 0, or why one can't be reached. */
int sr_worker_look(sr_worker *w);

/*
 * How long the worker may sleep before it has to ask again. 0: an answer has come already, and must not be
 * missed; below 0: for ever. In ns.
 */
int64_t sr_worker_patience(const sr_worker *w);

/*
 * Waits until each edge that has come has opened its queue; from an edge that does, this takes less than a
 * millisecond. False: one does not within a second, or there is none.
 */
bool sr_worker_meet(sr_worker *w);

/* The worker takes no more requests; sr_leaving. Async-signal-safe. */
void sr_worker_leave(sr_worker *w, int how);

void sr_worker_line_close(sr_worker_line *l);

#endif
