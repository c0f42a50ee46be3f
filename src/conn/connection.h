#ifndef SR_CONNECTION_H
#define SR_CONNECTION_H
/*
 * connection: one accepted socket, and how far its exchange (exchange.h) is.
 *
 * With a transport that encrypts, HANDSHAKE comes before IDLE (handshake.h), and TUNNEL after SERVING when
 * the application goes on with psgix.io (pump.h).
 *
 *      accept                                 kept alive; next request is here already
 *        |      first byte    head whole     ,-------------------------------------.
 *        v          |             |          v                                     |
 *      IDLE ------> HEAD ------> BODY ---> SERVING ----> FLUSH --------------------+--> IDLE
 *        |            |            |       (in the       (produced,
 *        |            `-- refused -'        queue, or     not all
 *        |                   |              with a        taken)
 *        |                   v              worker)         |
 *        |                 FLUSH ---> LINGER <--------------'  not kept
 *        |                              |
 *        `----------> closed <----------'
 *
 * STREAMS: in place of all from IDLE to FLUSH, where several exchanges run at a time, each with its own
 * stages.
 * HELD: after SERVING, when the application leaves the response with the edge (Grip-Hold, src/live); then
 * FLUSH, or closed.
 * READY: a complete request that can't be put into the queue; it is refused at once.
 * LINGER: this side is shut down, and what still comes is read and thrown away for a while, so that the
 * client can read the response before a reset removes it from its buffer (RFC 9112 9.6).
 *
 * Owner: the engine. An idle connection has no buffer: this struct and its descriptor are all, unless its
 * client has sent an empty line, or a part of one.
 * Failure: closing a connection frees it; functions that may do so say it.
 */
#include "../base/list.h"
#include "../net/loop.h"
#include "../net/peer.h"
#include "../share/counters.h"
#include "../transport/transport.h"
#include "exchange.h"
#include "output.h"
#include "turn.h"

typedef enum sr_conn_state {
    SR_CONN_IDLE,
    SR_CONN_HEAD,
    SR_CONN_BODY,
    SR_CONN_READY,
    SR_CONN_SERVING,
    SR_CONN_FLUSH,
    SR_CONN_LINGER,
    SR_CONN_HANDSHAKE,
    SR_CONN_TUNNEL,
    SR_CONN_STREAMS,
    SR_CONN_HELD,
} sr_conn_state;

typedef struct sr_conn {
    sr_source source;  /* must be first; kind SR_SOURCE_CONN */
    uint8_t state;     /* sr_conn_state */
    uint8_t listener;  /* index of the listener that accepted it */
    bool registered;   /* in the epoll set */
    bool proxy_header; /* in IDLE: the header of the PROXY protocol is to come, or a part of it */
    uint16_t interest; /* the events it is registered for: low bits of those of epoll, and one for EPOLLET */
    /* private to the protocol: read on at the end: bytes that nobody will answer may be on their way */
    bool linger;
    bool persists; /* private to the protocol: its last head, as far as it is known, was of HTTP/1.1 */
    const struct sr_protocol *protocol; /* what it speaks (protocol.h) */
    sr_transport *transport;            /* NULL: plain. Owned */
    struct sr_pump *pump; /* psgix.io of a connection that is not plain; NULL: not used. Owned */
    uint64_t sent;        /* bytes that the socket has accepted */

    bool gone;         /* the client is known to be gone, or a write has failed */
    bool close_after;  /* in FLUSH: close when everything is sent */
    uint8_t why;       /* sr_closed: for what reason it will count as closed */
    bool ended : 1;    /* this side is shut down: in LINGER, or before it */
    bool borrowed : 1; /* psgix.io: the application has a descriptor of the socket */
    bool held : 1;     /* a byte of the request is left in the socket, see h1/read.h */
    bool resets : 1;   /* sr_conn_resets was called for this response */
    uint32_t
        due_at; /* low bits of the monotonic ns since when it is in `due`, for those of SR_CONN_STREAMS */

    uint32_t requests;    /* on this connection, those that were refused included */
    int unacknowledged;   /* in FLUSH: bytes in the send buffer when the time limit was set */
    sr_peer peer;         /* as accept or the PROXY protocol has said */
    sr_deadline deadline; /* of idleness, a head, a write, a handshake, lingering */
    sr_link all;          /* in sr_engine.all */
    sr_link due;          /* in sr_engine.due or .holding, or alone */
    void *session;        /* private to the protocol, see sr_protocol.over; NULL: none */
    sr_turn *turn;        /* of its requests in slots, see turn.h; NULL: it had none yet. One of its owners */
    sr_link
        buffered; /* in sr_arrivals.buffered: bytes of the next request were read and wait; in HANDSHAKE in
                           sr_handshakes.ready or endings; or alone */

    sr_buffer in; /* bytes that were read and not used; while a body is collected, the head in front of it */
    sr_output *out; /* what the socket has not accepted yet; NULL: nothing. Owned */
    sr_exchange
        *exchange; /* the newest request at hand and its response; NULL: none, as while it is idle. Owned */
} sr_conn;

/* In IDLE, in no list. NULL: no memory, and fd stays the caller's. */
sr_conn *sr_conn_new(int fd, const sr_peer *peer, uint8_t listener);

/*
 * Frees it and closes the descriptor, unless that is -1. It must be out of every list, and have no exchange
 * and no pump.
 */
void sr_conn_free(sr_conn *c);

/* Drops the first `used` bytes of c->in, whose memory is freed if nothing is left. */
void sr_conn_used(sr_conn *c, size_t used);

/* Slot + 1 of its only request in the queue; 0: none. */
static inline uint32_t sr_conn_slot(const sr_conn *c)
{
    return c->exchange ? c->exchange->slot : 0;
}

/* --- in the engine --- */

struct sr_engine;

/* Adds it to the list of all connections. */
void sr_conn_enter(struct sr_engine *e, sr_conn *c);

/*
 * Watches it for these events, and for what its transport needs. False: epoll_ctl failed; the connection is
 * closed and freed, unless it is SERVING.
 */
bool sr_conn_watch(struct sr_engine *e, sr_conn *c, uint32_t events);
void sr_conn_unwatch(struct sr_engine *e, sr_conn *c);

/*
 * For a response that ends with the connection: until sr_conn_release, a close resets it, even if this
 * process is killed. On a unix socket only the byte that is held can do that.
 */
void sr_conn_resets(sr_conn *c);

/* From now on a close is an orderly end, whatever was sent. Reads the byte that is held. */
void sr_conn_release(sr_conn *c);

/* Closes and frees it, and counts the reason. A request that is owed counts as aborted. */
void sr_conn_close(struct sr_engine *e, sr_conn *c, sr_closed why);

/*
 * Frees it and closes the descriptor without ending the connection: another process has a descriptor as well.
 */
void sr_conn_forget(struct sr_engine *e, sr_conn *c);

#endif
