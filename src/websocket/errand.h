#ifndef SR_ERRAND_H
#define SR_ERRAND_H
/*
 * errand: a request that the edge makes by itself: an exchange of a connection without a socket, which is in
 * no list of the engine. To files that deal with exchanges it looks like a stream (SR_CONN_STREAMS), so
 * nothing is asked of its socket. It may outlive the connection of the client for which it is made.
 *
 * Owner: who has made it, who ends it when its response is complete, or abandoned.
 */
#include "../conn/protocol.h"

/* Who the client is for whom it is made. */
typedef struct sr_errand_for {
    sr_peer peer, client;
    sr_transport *facts; /* what is known of its encrypted connection; NULL: it was plain. Owned */
    uint8_t listener, version;
    bool trusted, proxied;
} sr_errand_for;

/* False: no memory. */
bool sr_errand_of(sr_errand_for *f, const sr_exchange *x);
void sr_errand_forget(sr_errand_for *f);

/* Its responses are given to `protocol`. NULL: no memory. `f` outlives it. */
sr_exchange *sr_errand_new(sr_engine *e, const sr_errand_for *f, const sr_protocol *protocol);
void sr_errand_end(sr_engine *e, sr_exchange *x);

/* Takes its request back that no worker has begun. False: one has. */
bool sr_errand_take_back(sr_engine *e, sr_exchange *x);

#endif
