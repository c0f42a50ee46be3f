#ifndef SR_CONNECTION_H
#define SR_CONNECTION_H
/*
 * connection: one accepted socket and where its conversation stands.
 *
 *      accept                                 kept alive, more bytes here: served in turn
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
 * READY is SERVING that nobody can serve: it is refused at once.
 * LINGER: our side is shut down, what still comes is read and thrown away for a while, so that the peer can
 * read the response before a reset takes it from its buffer (RFC 9112 9.6).
 *
 * Owner: the engine. An idle connection holds no buffer: this struct and its descriptor are all.
 */
#include "../base/list.h"
#include "../net/loop.h"
#include "../net/peer.h"
#include "../share/counters.h"
#include "body.h"
#include "output.h"

typedef enum sr_conn_state {
    SR_CONN_IDLE,
    SR_CONN_HEAD,
    SR_CONN_BODY,
    SR_CONN_READY,
    SR_CONN_SERVING,
    SR_CONN_FLUSH,
    SR_CONN_LINGER,
} sr_conn_state;

typedef struct sr_conn {
    sr_source source;  /* must be first; kind SR_SOURCE_CONN */
    uint8_t state;     /* sr_conn_state */
    uint8_t listener;  /* index of the listener it came through */
    bool registered;   /* in the epoll set */
    bool preface;      /* in IDLE: the header of the PROXY protocol is not read, or not to its end */
    uint32_t interest; /* the events it is registered for */
    uint32_t slot;     /* of its request in the queue, + 1; 0: none is there */

    /* the current request, set when it is taken, used by its response */
    uint8_t minor;
    bool is_head;
    bool keep_alive;      /* the client wants it and the server has nothing against it, as far as is known */
    bool wants_close;     /* the client has said that it is the last request of this connection */
    bool linger;          /* at the end read on: bytes may be on their way that nobody will answer */
    bool interim_pending; /* a part of a 100 is out, its rest waits in out in front of the response */
    bool gone;            /* the peer is known to be gone, or a write has failed */
    bool close_after;     /* in FLUSH: close when all is out */
    bool borrowed;        /* psgix.io: application code has had its hands on the socket */
    sr_closed why;        /* it will be closed, once that is decided */

    /* of the current request too, for account.c */
    bool owed;           /* not accounted for yet */
    bool refused;        /* the server itself answers */
    bool broken;         /* the response that was handed over is not the whole of it */
    uint32_t status;     /* of its final response; 0: there was none */
    uint32_t head_bytes; /* of `sent`, those of the head of that response */
    int64_t given_at;    /* to the application; 0: it was not */
    int64_t back_at;     /* when the application was done with the response */

    uint32_t requests;  /* taken on this connection, and refused */
    sr_peer peer;       /* whom accept has named, or that header */
    sr_peer client;     /* of the current request: the peer, or whom trusted proxies name */
    sr_link timer;      /* in one of the engine's deadline lists, or alone */
    uint8_t timer_kind; /* sr_deadline_kind of that list */
    int64_t deadline;   /* monotonic ns; valid while timer is linked */
    sr_link all;        /* in engine->all */
    sr_link buffered;   /* in engine->buffered: bytes of its next request were read and wait */
    int64_t ready_at;   /* when the current request was complete; 0: refused before */
    int unacknowledged; /* in FLUSH: bytes in the send buffer when the write limit was set */
    uint64_t sent;      /* bytes of the current response on the wire, interim responses aside */
    int64_t active_at;  /* when something was last added to it; valid once something is sent */

    sr_buffer in;      /* bytes read and not used; while a head is kept for a body: that head first */
    sr_request *parse; /* of the head at the start of `in`; NULL while none has begun. Owned */
    sr_body *body;     /* being collected, or whole; NULL when there is none. Owned */
    sr_output *out;    /* NULL while nothing is pending. Owned */
    sr_buffer *record; /* what its line of the log needs of the request, while more is to be known. Owned */
} sr_conn;

sr_conn *sr_conn_new(int fd, const sr_peer *peer,
                     uint8_t listener); /* NULL: no memory; fd stays the caller's */

/* Frees all it owns and closes the descriptor, unless that is -1. It must be out of every list. */
void sr_conn_free(sr_conn *c);

/* What it keeps for a request is let go: in is taken `used` bytes forward and freed when empty. */
void sr_conn_forget_request(sr_conn *c, size_t used);

/* --- in the engine --- */

struct sr_engine;

void sr_conn_enter(struct sr_engine *e, sr_conn *c); /* into the list of all */
/* False: epoll_ctl failed; the connection is closed, unless it is SERVING. */
bool sr_conn_watch(struct sr_engine *e, sr_conn *c, uint32_t events);
void sr_conn_unwatch(struct sr_engine *e, sr_conn *c);
void sr_conn_leave(struct sr_engine *e, sr_conn *c); /* nobody waits for the reply of a worker any more */
void sr_conn_close(struct sr_engine *e, sr_conn *c, sr_closed why); /* what is owed counts as aborted */
/* Frees it and closes our descriptor, but does not end the connection. */
void sr_conn_forget(struct sr_engine *e, sr_conn *c);

#endif
