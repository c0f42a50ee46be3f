#ifndef SR_EXCHANGE_H
#define SR_EXCHANGE_H
/*
 * exchange: one request and its response. A connection that is idle has none; with HTTP/1.x it has one at a
 * time, from the first bytes of a request, an empty line before it included, until the last byte of its
 * response was sent, or the connection lingers. In SR_CONN_STREAMS it may have many.
 *
 * Owner: the connection, whose conn->exchange is the newest. Finished exchanges are kept in a list of the
 * engine for the next requests.
 * Failure: without memory no exchange begins. One is held in reserve for a client that is to be told so.
 */
#include "../http/request.h"
#include "../net/peer.h"
#include "body.h"
#include "deadline.h"

struct sr_conn;
struct sr_engine;

typedef struct sr_exchange {
    struct sr_conn *conn;
    const struct sr_protocol
        *protocol; /* to which its response is given: that of the connection, unless it is of another kind */
    void *stream;  /* private to the protocol */
    struct sr_exchange *older, **place; /* of the connection: the one before it; what points to this one */
    sr_deadline deadline;               /* of its body, the queue, the call, the stream */
    uint32_t stream_number;             /* of the stream, from 1; 0: the protocol has none */
    uint32_t slot;                      /* slot + 1 of the request in the queue; 0: it is not there */

    /*
     * In the order of their sizes, and what few requests need as bits: ten thousand held responses have an
     * exchange each. First of the request, then of the response, then as account.h counts it.
     */
    uint8_t version; /* sr_version; before the head is complete, that of the request before */
    bool is_head;
    bool wants_close; /* the client has said that this is its last request */
    bool trusted;     /* it came from a trusted peer */
    uint8_t urgency;  /* beside others of its connection that wait (http/priority.h); 0 goes first */
    /* the connection goes on behind it: the client wants it and, as far as is known, the server does */
    bool keep_alive;
    bool chunked;             /* private to the protocol */
    bool owed;                /* not counted yet */
    uint8_t refused;          /* sr_refusal: why the server answers by itself */
    bool lent : 1;            /* psgix.io: the application has a descriptor of the socket, or of one for it */
    bool proxied : 1;         /* it came from a proxy, as far as is known */
    bool cut_by_reset : 1;    /* a close alone could make it look complete when it is not */
    bool interim_pending : 1; /* a part of an interim response is out, and the rest waits in conn->out */
    bool broken : 1;          /* the response is incomplete */
    bool is_own : 1; /* the edge answers without the application: a file, a redirect; no latency is counted */
    bool is_file : 1;   /* of --static: is_own too */
    bool is_tunnel : 1; /* asked for by extended CONNECT (RFC 8441): a response of 2xx says that it is open */
    uint16_t status;    /* of the final response; 0: there was none */
    uint32_t head_bytes; /* bytes of its head, which are included in `sent` */
    uint32_t messages;   /* that were sent to it while it was held */
    uint32_t held_at;    /* low bits of the monotonic ms since which it is or was held; 0: it was not */

    sr_peer client;    /* the peer, or whom trusted proxies name */
    int64_t ready_at;  /* monotonic ns at which it was complete; 0: it was refused before that */
    int64_t before_ns; /* that it was with a proxy in front (started.h), as far as it says */
    uint64_t number;   /* for its id: in the queue, or sr_engine_id; 0: it has none yet. See identity.h */
    char *named; /* the id that a trusted proxy has given it, if responses have ids; NULL: none. Owned */
    /* of the head at the start of conn->in, until it is dispatched; NULL: the head came whole. Owned */
    sr_request *parse;
    sr_body *body; /* being collected, or complete; NULL: none. Owned */

    uint64_t left;     /* bytes of the body still to be given, once there is a head; or SR_LENGTH_UNKNOWN */
    int64_t active_at; /* monotonic ns at which more of it came; valid once something was sent */
    /* sr_conn.sent where it begins, behind interim responses: what follows is its bytes on the wire */
    uint64_t sent_from;
    int64_t given_at; /* monotonic ns at which the application was called; 0: it was not */
    int64_t back_at;  /* monotonic ns at which the application had completed the response */
    /* of the application, private to src/live and its users; NULL: it is not. sr_engine.released frees it */
    void *held;
    sr_buffer *values; /* values of the request that its log line needs later (accesslog.h). Owned */
} sr_exchange;

/* Finished exchanges. */
typedef struct sr_exchanges {
    sr_exchange *reserve; /* NULL: it is in use */
    sr_exchange *free;    /* linked by `conn`, which is no connection there */
    uint32_t n_free;
} sr_exchanges;

int sr_exchanges_init(sr_exchanges *all); /* 0 or ENOMEM */
void sr_exchanges_free(sr_exchanges *all);

/*
 * The exchange of this connection, which has one at a time and begins it now unless it has. NULL: no memory.
 */
sr_exchange *sr_exchange_begin(struct sr_engine *e, struct sr_conn *c);

/* One more of this connection. NULL: no memory. */
sr_exchange *sr_exchange_add(struct sr_engine *e, struct sr_conn *c);

/* The same for an exchange of which nothing comes but a refusal: may take the reserve. */
sr_exchange *sr_exchange_begin_refused(struct sr_engine *e, struct sr_conn *c);

void sr_exchange_free_request(sr_exchange *x); /* of sr_exchange_drop_request */

/* Frees what was kept of the request: it is dispatched, or nobody needs it. The bytes in conn->in stay. */
static inline void sr_exchange_drop_request(sr_exchange *x)
{
    if (x->parse || x->body)
        sr_exchange_free_request(x);
}

/* The application leaves it with the edge. */
static inline void sr_exchange_hold(sr_exchange *x, int64_t now)
{
    uint32_t ms = (uint32_t)(now / SR_MILLISECOND);
    x->held_at = ms ? ms : UINT32_MAX;
}

/* Whether the client is given all of the response that its head has promised, and will know it. */
static inline bool sr_exchange_whole(const sr_exchange *x)
{
    return x->status && !x->left;
}

/*
 * Separates it from its request in the queue: nobody waits for the worker's reply any more. Returns a link,
 * in no list, of a request that still runs, which is removed when it is over; NULL: none does
 * (sr_engine.abandoned).
 */
sr_link *sr_exchange_abandon(struct sr_engine *e, sr_exchange *x);

/* The exchange is over: the connection forgets it. NULL: does nothing. */
void sr_exchange_end(struct sr_engine *e, sr_exchange *x);

#endif
