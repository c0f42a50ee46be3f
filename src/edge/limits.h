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

/* Epoll events of a connection with a request. */
void sr_limits_peer_event(sr_edge *ed, sr_exchange *x, uint32_t events);

/*
 * A time limit of a connection with a request is over. False: no worker has the request, and the caller
 * refuses it. Called by conn/ through sr_engine.expired.
 */
bool sr_limits_expired(sr_edge *ed, sr_exchange *x, sr_deadline_kind kind);

/* In each step of the loop: time limits of requests whose client is gone. */
void sr_limits_expire_abandoned(sr_edge *ed);
/* When the first of those is due, monotonic ns; INT64_MAX: there is none. */
int64_t sr_limits_abandoned_at(const sr_edge *ed);

#endif
