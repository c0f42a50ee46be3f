#ifndef SR_DISPATCH_H
#define SR_DISPATCH_H
/*
 * dispatch: has the edge answer a complete request, if that is what its setup says (files, plain), or puts it
 * into the queue, from which any free worker takes it.
 *
 * Called by: the loop (edge.c), for each task that conn/intake.h returns.
 * Failure: when the queue is full (--max-queue), or there is no memory, the client gets 503 and the
 * connection ends.
 */
#include "../conn/intake.h"
#include "edge.h"

/*
 * Takes over the task, the descriptor of its body included. Afterwards the connection is in SR_CONN_SERVING
 * with a slot, or is answered, or refused and perhaps freed.
 */
void sr_dispatch(sr_edge *ed, sr_task *task);

/*
 * The same for a request that the edge makes (websocket/errand.h): it is for the application. `ed` is the
 * sr_edge.
 */
void sr_dispatch_errand(void *ed, sr_task *task);

/* Whether it would not be refused now for lack of room in the queue. */
bool sr_dispatch_has_room(void *ed, const sr_task *task);

#endif
