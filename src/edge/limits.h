#ifndef SR_LIMITS_H
#define SR_LIMITS_H
/*
 * limits: requests that end before their worker has replied: the client is gone, or a time limit is over
 * (--queue-timeout, --request-timeout, --stream-timeout).
 *
 * A worker can't be interrupted from here. A worker that is too late is reported to the supervisor, which
 * kills it; until then its entry stays, and what it writes is thrown away.
 *
 * Closing: peer_event, expired and expire_abandoned may close and free connections.
 */
#include "edge.h"

/*
 * A connection with a request is about to be closed, or answered by the edge itself: separates the two. A
 * request that still waits leaves the queue; otherwise its worker is watched on. Called by conn/ through
 * sr_engine.left.
 */
void sr_limits_leave(sr_edge *ed, sr_conn *c);

/* Epoll events of a connection with a request. */
void sr_limits_peer_event(sr_edge *ed, sr_conn *c, uint32_t events);

/* Asks the kernel for the client of a request: 0: it is there; 1: it has shut its side down; -1: it is gone. */
int sr_limits_peer(const sr_conn *c);

/*
 * A time limit of a connection with a request is over. False: no worker has the request, and the caller
 * refuses it. Called by conn/ through sr_engine.expired.
 */
bool sr_limits_expired(sr_edge *ed, sr_conn *c, sr_deadline_kind kind);

/* In each step of the loop: time limits of requests whose client is gone. */
void sr_limits_expire_abandoned(sr_edge *ed);
/* When the first of those is due, monotonic ns; INT64_MAX: there is none. */
int64_t sr_limits_abandoned_at(const sr_edge *ed);

/*
 * Tells the supervisor that a worker has ended with this request, and what its client got, `end`: "the client
 * got 502".
 */
void sr_limits_tell_lost(sr_edge *ed, uint32_t slot, int32_t pid, const char *end);

/*
 * The application writes nothing for now: has the client gone? Then the connection is closed, and freed. If it has ended its side, the kernel
 * asks it whether it still reads.
 */
void sr_limits_probe(sr_edge *ed, sr_conn *c);

#endif
