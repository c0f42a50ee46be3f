#ifndef SR_WEBSOCKET_H
#define SR_WEBSOCKET_H
/*
 * websocket: WebSockets that the edge holds (--hold), while the application is asked by ordinary requests
 * (WebSocket-over-HTTP).
 *
 *   OPENING   the application is asked by the event OPEN. The client waits for the response to its own
 *             request
 *   REFUSED   it does not answer with OPEN: its response goes to the client
 *   OPEN      messages of the client become events, those in responses messages for the client
 *   CLOSING   CLOSE was sent, and that of the client is to come
 *   OVER      the client has its end; the application may have to be told
 *
 * The carrier is the exchange of the request that has opened it: what goes to the client is the body of its
 * response (101, or 200 to extended CONNECT). Its connection is in SR_CONN_HELD if it has one exchange at a
 * time. The requests for the application are errands (errand.h), one at a time; what comes meanwhile is told
 * by the next one. While more than --websocket-max-message of that waits, nothing more is read.
 *
 * wscarrier.h sends to the client, wsread.h reads from it, wsanswer.h takes responses of the application,
 * wsask.h sends it requests.
 *
 * Owner: the edge. One thread. A WebSocket is freed by sr_websockets_step only.
 * Failure: without memory a WebSocket is closed with SR_CLOSE_ERROR.
 */
#include "../conn/intake.h"
#include "../conn/protocol.h"
#include "../live/live.h"
#include "errand.h"
#include "opening.h"
#include "wsframe.h"

typedef enum sr_websocket_state {
    SR_WEBSOCKET_OPENING,
    SR_WEBSOCKET_REFUSED,
    SR_WEBSOCKET_OPEN,
    SR_WEBSOCKET_CLOSING,
    SR_WEBSOCKET_OVER,
} sr_websocket_state;

enum {
    SR_WEBSOCKET_CLOSE_S = 5,                   /* seconds for the client to answer CLOSE */
    SR_WEBSOCKET_ANSWER_MAX = 32 * 1024 * 1024, /* bytes of one response of the application */
    SR_WEBSOCKET_ANSWERS_MAX = 50000,           /* events in it: each takes up to a microsecond */
    SR_WEBSOCKET_TOLD_MAX = 1000,               /* events that wait; then nothing more is read */
    SR_WEBSOCKET_EARLY_MAX = 64 * 1024,         /* bytes that a client sends before it is open */
    SR_WEBSOCKET_PREFIX_MAX = 31,               /* bytes of message-prefix */
};
/* bytes of messages that clients have sent, of all: beyond it who has most, and for longest, is closed */
#define SR_WEBSOCKETS_MEMORY ((size_t)256 * 1024 * 1024)

/* A response of the application. */
typedef struct sr_wsreply {
    int status;
    bool events;      /* it has the content type of events */
    bool failed;      /* it is too large, or there is no memory */
    sr_buffer fields; /* as lines */
    sr_buffer body;
} sr_wsreply;

/* What is sent when nothing else was. */
typedef struct sr_wsalive {
    uint32_t seconds, due; /* due: second of the loop's clock */
    bool interval;
    sr_wsframe_kind kind;
    size_t len;
    char content[];
} sr_wsalive;

typedef struct sr_websocket {
    sr_subscriber subscriber; /* must be first; begun when it is open */
    struct sr_websockets *all;
    sr_link link;         /* in sr_websockets.list */
    sr_link asking;       /* in sr_websockets.asking, or alone */
    sr_exchange *carrier; /* NULL: it is over */
    sr_exchange *errand;  /* the request that the application has; NULL: none */
    sr_errand_for client;
    uint8_t state;  /* sr_websocket_state */
    bool streams;   /* its connection has others */
    bool given;     /* the errand is in the queue, or a worker has it: counted in sr_websockets.given */
    bool entering;  /* the errand was made, and its events are still in `events` */
    bool counted;   /* for --hold-per-client */
    bool grip;      /* the application sends control messages */
    bool detached;  /* the application wants to hear nothing more */
    bool accepted;  /* the application has answered OPEN, and so will be told of the end, */
    bool told;      /* which was done */
    bool closed;    /* CLOSE of the client has come */
    bool late;      /* it has subscribed behind something that was published */
    bool paused;    /* nothing is read: too much waits */
    uint8_t prefix; /* bytes of message_prefix */
    uint8_t pings;  /* since the client was heard */
    /*
     * code for a rule that the client has broken, or an end of the server, to be sent after the answers still
     * owed to it; 0: none
     */
    uint16_t broken;
    uint16_t code;     /* with which the client has closed */
    uint32_t n_events; /* in `events` */
    size_t
        end_at; /* bytes of `events` before the end of it, which is a request of its own; 0: there are none */
    size_t asked;   /* bytes of `events` that the errand has */
    uint32_t since; /* second since which it keeps bytes of messages */
    /* second at which --body-timeout of a message that is not complete has begun; 0: there is none */
    uint32_t window;
    uint64_t got;              /* bytes of the client since then */
    uint32_t heard;            /* second at which bytes of the client have come */
    uint32_t pinged;           /* second of the last ping */
    uint32_t second, messages; /* --websocket-rate: how many frames in that second */
    uint64_t owed;             /* bytes of answers that its client had not taken when the last one was sent */
    size_t memory;             /* counted in sr_websockets.memory */
    sr_wsframe frames;
    sr_buffer events;               /* for the next request */
    sr_buffer meta;                 /* fields, as lines */
    sr_buffer head;                 /* see eventhead.h */
    sr_buffer early;                /* bytes of the client that have come before it was open */
    sr_wsreply *reply;              /* which is being taken; NULL: none */
    sr_wsalive *alive;              /* NULL: nothing */
    char accept[SR_OPENING_ACCEPT]; /* for HTTP/1.1 */
    char message_prefix[SR_WEBSOCKET_PREFIX_MAX];
} sr_websocket;

typedef struct sr_websockets {
    sr_engine *engine;
    sr_live *live;
    const sr_subscriber_ops *ops;
    void *with;                             /* for: */
    void (*ask)(void *with, sr_task *task); /* takes a task of an errand over, as sr_dispatch */
    bool (*has_room)(void *with,
                     const sr_task *task);        /* it would be in the queue; otherwise it is asked later */
    void (*invalid)(void *with, const char *why); /* tells what is wrong with a response of the application */
    void (*crowded)(void *with,
                    const sr_websocket *ws); /* tells that this one is closed for SR_WEBSOCKETS_MEMORY */
    int64_t said_at, crowded_at;             /* of `with`: when these were told last */
    sr_link list;                            /* all */
    sr_link asking;   /* those with events to tell and no errand, and those that may have to be freed */
    sr_link later;    /* those for whom there was no room; some are asked again */
    int64_t again_at; /* at this time */
    uint32_t given,
        /* errands in the queue or with workers; at most, set by the owner. The others wait in `asking` */
        most;
    size_t memory;
    sr_buffer out;   /* scratch: frames for one client */
    sr_buffer pongs; /* scratch: those that answer what has just been read */
    sr_buffer text;  /* scratch */
} sr_websockets;

/* The WebSocket whose carrier this is; NULL: it is held for something else, or not. */
static inline sr_websocket *sr_websocket_of(const sr_exchange *x)
{
    sr_subscriber *s = x->held;
    bool is_one = s && (!s->ops || s->ops->kind == SR_HELD_WEBSOCKET); /* without: it is not open */
    return is_one ? (sr_websocket *)s : NULL;
}

/* NULL: no memory. `live` outlives it. */
sr_websockets *sr_websockets_new(sr_engine *e, sr_live *live);
void sr_websockets_stop(sr_websockets *all); /* forgets what the application has been asked */
void sr_websockets_free(sr_websockets *all); /* behind the connections; NULL is fine */

/*
 * Takes over the task of a request that opens a WebSocket, which was checked (opening.h). The caller has kept
 * the values of its log line. Otherwise why not, and the task is as it was.
 */
sr_refusal sr_websocket_begin(sr_websockets *all, sr_task *task, const sr_opening *o);

/*
 * One that was packed in another edge (sr_subscriber_ops.pack), for the connection which was just taken over.
 * False: that is not possible, and the caller closes the connection. May close it, and is true then.
 */
bool sr_websocket_adopt(sr_websockets *all, sr_conn *c, sr_bytes packed);

/* An event of its connection, which is in SR_CONN_HELD. May close it. */
void sr_websocket_event(sr_websocket *ws, uint32_t events);

/* The client has taken more of what was sent. */
void sr_websocket_drained(sr_websocket *ws);

/*
 * Bytes of a stream have come, which are changed; `ended`: the client sends no more of it. False: more should
 * not come for now.
 */
bool sr_websocket_data(sr_websocket *ws, char *at, size_t len, bool ended);

/* Whether events, or an end, wait for sr_websockets_step. */
static inline bool sr_websockets_wait(const sr_websockets *all)
{
    return !sr_link_alone(&all->asking) && all->given < all->most;
}

/* When they will, unless others do before; INT64_MAX: never. */
static inline int64_t sr_websockets_at(const sr_websockets *all)
{
    return sr_link_alone(&all->later) || all->given >= all->most ? INT64_MAX : all->again_at;
}
void sr_websockets_step(sr_websockets *all);

#endif
