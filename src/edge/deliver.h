#ifndef SR_DELIVER_H
#define SR_DELIVER_H
/*
 * deliver: reads what workers have written to their rings, and sends it to the clients as responses.
 *
 * Trust: none. Each record is copied before it is checked. A record that is malformed, or not possible in the
 * state of its request, breaks the worker (crew.h); other requests do not notice.
 * Failure: without memory or a descriptor the client gets 503, or sees that the response is cut; the worker
 * goes on.
 * Closing: all functions here but sr_deliver_pending may close and free connections.
 */
#include "edge.h"

/*
 * Reads the ring of one worker, 64 KiB of it at most, so that a worker that writes all the time does not hold
 * up the others.
 */
void sr_deliver(sr_edge *ed, sr_edge_worker *m);

/* Whether a worker has announced records that were not read yet. */
bool sr_deliver_pending(const sr_edge *ed);

/* Reads the rings of all workers that have announced records. */
void sr_deliver_all(sr_edge *ed);
/* Behind that: publishes what has come. With an edge that holds responses only. */
void sr_deliver_published(sr_edge *ed);

/*
 * In each step of the loop while ed->held.some or memory for outputs is above its limit: lets workers go on
 * that had to wait for room, or has the slowest client pay (slowest.h), at most once in SR_DELIVER_HELD_NS.
 */
void sr_deliver_held(sr_edge *ed);
#define SR_DELIVER_HELD_NS (20 * SR_MILLISECOND)

/*
 * The socket of a connection with a request accepts more bytes: sends them, and reads on if the worker had to
 * wait for that.
 */
void sr_deliver_writable(sr_edge *ed, sr_exchange *x);

/*
 * Whether the client has got nothing of a response, so that the edge can still answer: neither from a worker,
 * nor from an application that has the socket (psgix.io).
 */
bool sr_deliver_unanswered(sr_edge *ed, const sr_entry *en);

/*
 * The worker that had the request is gone (`pid`), or is broken (pid 0). If the application has not been
 * called yet, the request goes back into the queue. Otherwise its client gets 502, or sees that the response
 * is cut, and the supervisor is told.
 */
void sr_deliver_lost(sr_edge *ed, uint32_t slot, int32_t pid);

/* Ends the requests that the worker holds: `ended`: its process has. */
void sr_deliver_end(sr_edge *ed, sr_edge_worker *m, bool ended);

/* The worker broke the rules; `why` continues "worker 4711" in the log. Does nothing the second time. */
void sr_deliver_broken(sr_edge *ed, sr_edge_worker *m, const char *why);

#endif
