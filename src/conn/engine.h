#ifndef SR_ENGINE_H
#define SR_ENGINE_H
/*
 * engine: all connections of an edge, and what they share: the loop, the clock, the listeners, the time
 * limits.
 *
 * Events go in, and complete requests come out (intake.h); responses go in (protocol.h). The engine
 * does not know who serves a request: meanwhile the connection is in SR_CONN_SERVING and has the number of a
 * slot. Hooks tell the owner of the slot what happens to the connection.
 *
 * Owner: the edge (src/edge/edge.h). Thread: one.
 * Failure: nothing that happens to one connection ends the process. The connection is refused or closed.
 */
#include "../base/clock.h"
#include "../http/date.h"
#include "../net/loop.h"
#include "../share/scoreboard.h"
#include "../transport/tls.h"
#include "accesslog.h"
#include "capacity.h"
#include "config.h"
#include "connection.h"
#include "handshake.h"
#include "joined.h"
#include "leased.h"
#include "listener.h"
#include "spools.h"

enum {
    SR_SOURCE_LIFELINE,
    SR_SOURCE_LISTENER,
    SR_SOURCE_CONN,
    SR_SOURCE_LOG,
    SR_SOURCE_PUMP,
    SR_SOURCE_OTHERS = 32, /* from here on: kinds of the edge */
};

typedef struct sr_engine {
    sr_config config;

    /* hooks, set by the owner after sr_engine_new; `with` is their first argument */
    void *with;
    /*
     * an exchange with a slot is about to be closed, or answered by the engine. Returns a link that the owner
     * removes when the worker is done with the request; NULL: it leaves the queue, and no worker has it
     */
    sr_link *(*abandoned)(void *with, sr_exchange *x);
    /*
     * SR_DEADLINE_QUEUE, LOOK, CALL or STREAM of an exchange is over. False: refuse it, it has waited too
     * long
     */
    bool (*expired)(void *with, sr_exchange *x, sr_deadline_kind kind);
    /*
     * connections of other edges, which count for max_connections; NULL: there are no other edges, likewise
     * below
     */
    uint64_t (*others)(void *with);
    /*
     * asks another edge to close its oldest idle connection, if that is older than `oldest` of this edge (0:
     * none)
     */
    bool (*shed)(void *with, int64_t oldest);
    /* this edge can't accept now: others should look at the listeners */
    void (*stuck)(void *with);
    /*
     * the client of an exchange with a slot, on a connection in SR_CONN_STREAMS, has taken more of the
     * response
     */
    void (*drained)(void *with, sr_exchange *x);
    /*
     * the handshake of a connection, which is about to be closed, has failed; `words` as of
     * sr_transport_ops.failure
     */
    void (*failed)(void *with, const sr_conn *c, sr_failure why, const char *words);
    /*
     * the client of this connection, which speaks HTTP/2, has done that too often; `end`: the connection
     * ends, too
     */
    void (*flooded)(void *with, const sr_conn *c, sr_flood what, bool end);

    /*
     * bytes of the client of an exchange that is held, on a connection in SR_CONN_STREAMS; they may be
     * changed. `ended`: no more come.
     * False: no more should come, until sr_protocol.more is called
     */
    bool (*came)(void *with, sr_exchange *x, char *at, size_t len, bool ended);
    /* an exchange ends that is held for the application */
    void (*released)(void *with, sr_exchange *x);

    struct sr_live
        *live; /* what is held for the application; NULL: nothing is. Set by the owner, who owns it */

    const struct sr_protocol *protocol; /* that of connections which enter; set by the owner, likewise */
    const struct sr_protocol *streams;  /* HTTP/2; NULL: there is none */

    /* engine.c */
    sr_loop loop;
    sr_source lifeline; /* pipe from the supervisor, whose end of file means that it is gone; fd -1: none */
    int64_t tunnels_until; /* draining, and nothing but tunnels is left: monotonic ns; 0: there is more */
    bool draining;         /* accept nobody, and say close in each response */
    bool says_close;   /* --drain-delay: responses of HTTP/1 say close, so that load balancers go elsewhere */
    bool apart;        /* the same, but a client that has sent more already gets a response to that first */
    bool retiring;     /* connections are passed on, but a response says close where a transport can't be */
    int64_t now;       /* monotonic ns, read once in each step of the loop */
    int64_t looked_at; /* monotonic ns, when limits were last looked through */
    int64_t wall;      /* seconds since 1970 */
    int64_t wall_offset; /* ns, wall clock minus monotonic clock; renewed each second */
    char date[SR_DATE_LEN];

    /* connection.c */
    sr_link all;     /* every connection */
    sr_link holding, /* those of them that wait for more, a millisecond at most */
        due;    /* those whose protocol has something to send when a step of the loop ends, see sr_due_send */
    bool brisk; /* calls are so short that it pays to wait for another one, see sr_due_holds */
    uint64_t n_conns;
    uint64_t n_tunnels; /* of them, in TUNNEL */

    /* what belongs to one file: see its header */
    sr_listeners listeners;
    sr_capacity capacity;
    sr_deadlines deadlines;
    sr_exchanges exchanges;
    sr_arrivals intake;
    sr_handshakes handshakes;
    sr_spools spools;
    sr_leased leased;
    sr_joined joined;
    sr_link partings; /* parting.h */
    sr_buffer lines;  /* scratch: a head as lines */

    sr_tls *tls; /* for listeners with is_tls; NULL: there is none. Set by the owner, and owned here */

    /* send.c */
    size_t pending; /* bytes of memory in all outputs */

    /* psgix.io of streams */
    uint64_t n_lent; /* that applications have, with those of parting.h */
    size_t passing;  /* bytes of clients that they have not taken, of all */

    sr_accesslog *log;         /* NULL: there is none */
    uint64_t nonce;            /* random: for ids of requests (http/traced.h) */
    uint64_t ids;              /* given to requests that never got a number in the queue */
    sr_scoreboard *scoreboard; /* NULL: there is none */
    sr_row *row;               /* the row of this edge; without a scoreboard no_row */
    sr_row no_row;
} sr_engine;

void sr_engine_tick(sr_engine *e); /* reads the clock */

/* Whether nobody is connected, and nothing is left for an application. */
static inline bool sr_engine_over(const sr_engine *e)
{
    return !e->n_conns && sr_link_alone(&e->partings);
}

/* Writes state and numbers of connections to the row, for the status page and the like. */
void sr_engine_publish(sr_engine *e, sr_worker_state state);

/* A number for the id of a request that has none in the queue, in place of that. */
static inline uint64_t sr_engine_id(sr_engine *e)
{
    return UINT64_C(1) << 63 | ++e->ids;
}

/* Whether to keep the connection after this response. Decided when its head is made. */
bool sr_engine_keeps(const sr_engine *e, const sr_exchange *x);

#endif
