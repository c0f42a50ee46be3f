#ifndef SR_ENGINE_H
#define SR_ENGINE_H
/*
 * engine: all connections of an edge, and what they share: the loop, the clock, the listeners, the time limits.
 *
 * Events go in, complete requests come out (intake.h); responses go in (send.h, finish.h). Who serves a request is not known
 * here: while it is served its connection is in SR_CONN_SERVING with a slot, and the three hooks tell who has it what happens.
 *
 * Owner: the edge (../edge/edge.h). Thread: one. Failure: nothing of one connection ends the process; it is refused, or closed.
 */
#include "../base/clock.h"
#include "../http/date.h"
#include "../net/loop.h"
#include "../share/scoreboard.h"
#include "accesslog.h"
#include "config.h"
#include "connection.h"

enum {
    SR_SOURCE_CONTROL,
    SR_SOURCE_LISTENER,
    SR_SOURCE_CONN,
    SR_SOURCE_LOG,
    SR_SOURCE_OTHERS = 32, /* from here on: of the edge */
};

enum {
    SR_LISTENERS_MAX = 64,
    SR_SCRATCH = 128 * 1024, /* one read; a request that fits is dispatched from here and copied once */
};

/* One list each, in order of time, since the time limit of a kind is constant. */
typedef enum sr_deadline_kind {
    SR_DEADLINE_HEAD,
    SR_DEADLINE_BODY,
    SR_DEADLINE_IDLE,
    SR_DEADLINE_WRITE,
    SR_DEADLINE_QUEUE,
    SR_DEADLINE_LINGER,
    SR_DEADLINE_LOOK,   /* a request waits, is its client still there? */
    SR_DEADLINE_CALL,   /* it is with a worker */
    SR_DEADLINE_STREAM, /* its response has begun */
    SR_DEADLINE_KINDS,
} sr_deadline_kind;

typedef struct sr_listener {
    sr_source source; /* kind SR_SOURCE_LISTENER; the descriptor is the supervisor's and is not closed here */
    bool registered;
    bool is_unix;
    bool over; /* shut down by the supervisor: nobody comes any more, and it is readable for ever */
} sr_listener;

#define SR_NO_LIMIT (INT64_MAX / 4) /* ns; may be added to a time */

typedef struct sr_engine {
    sr_config config;

    /* who has the requests; set after new */
    void (*left)(void *with,
                 sr_conn *c); /* a connection with a slot is about to be closed or answered here */
    /* its SR_DEADLINE_QUEUE, LOOK, CALL or STREAM has come; false: it has waited too long and is to be refused */
    bool (*expired)(void *with, sr_conn *c, sr_deadline_kind kind);
    uint64_t (*others)(
        void *with); /* NULL: none. Connections of other edges, which count for max_connections */
    /* likewise: one of them makes room, if its oldest idle connection is older than this time of ours; 0: ours has none */
    bool (*shed)(void *with, int64_t oldest);
    void (*stuck)(void *with); /* likewise: this edge can't accept now, they are to look */
    void *with;

    /* engine.c */
    sr_loop loop;
    struct epoll_event events[SR_LOOP_EVENTS]; /* the batch at hand: [event, n_events) is still to do */
    int event, n_events;
    sr_source control; /* pipe to the supervisor; -1: none. Its end of file means drain */
    bool draining;     /* no newcomers, and each response says close */
    sr_listener listeners[SR_LISTENERS_MAX];
    unsigned n_listeners;
    bool listening;          /* the listeners are in the epoll set */
    int64_t listeners_again; /* for want of descriptors or memory they are out until then; 0: they are not */
    int64_t now;             /* monotonic ns, read once in a step of the loop */
    int64_t wall;            /* s */
    int64_t wall_offset;     /* wall clock minus monotonic, ns; renewed each second */
    char date[SR_DATE_LEN];

    /* connection.c */
    sr_link all; /* every connection */
    uint64_t n_conns;

    /* capacity.c, of this process's descriptors */
    int spare;   /* that newcomers leave free */
    int scarce;  /* one of this number or above is one of them */
    int besides; /* that are not connections, when they were last counted */
    int high;    /* connections whose descriptor is scarce */

    /* deadline.c */
    sr_link deadlines[SR_DEADLINE_KINDS];
    int64_t limit[SR_DEADLINE_KINDS]; /* ns */
    uint32_t running;                 /* a bit for each kind whose list may have somebody in it */
    uint64_t n_idle;                  /* length of the list SR_DEADLINE_IDLE */
    int waited_too_long;              /* status for a request whose SR_DEADLINE_QUEUE is over: 503, or 504 */

    /* intake.c */
    sr_link buffered;   /* connections whose next request is here already */
    bool made_room;     /* an idle one was closed for want of a descriptor, and accept is to be tried again */
    char *scratch;      /* SR_SCRATCH bytes */
    sr_request request; /* scratch of the parser */
    sr_forwarded forwarded;
    sr_conn *current;        /* of the task at hand; NULL: there is none */
    bool current_in_scratch; /* the task's bytes lie in scratch, not in current->in */
    size_t current_used;     /* bytes of the view that are the request */
    sr_bytes current_view;
    sr_bytes fresh;          /* the last bytes read of requests, in scratch */
    const sr_conn *fresh_of; /* from that connection; NULL: it is no more */

    /* send.c */
    size_t pending; /* bytes of memory in outputs */

    sr_accesslog *log;         /* NULL: there is none */
    sr_scoreboard *scoreboard; /* may be NULL */
    sr_row *row;               /* of this edge, or a private one; never NULL */
    sr_row no_row;
} sr_engine;

/*
 * 0 or errno. `control` is -1 or a descriptor whose end of file means drain. One allocation of about 150 KiB with its
 * scratch. Scoreboard and row are set after it.
 */
int sr_engine_new(sr_engine **out, const sr_config *config, int control);
void sr_engine_free(sr_engine *e); /* closes its connections; NULL is fine */

/* A listening, non-blocking socket; stays the caller's. 0 or errno (ENOSPC: too many). */
int sr_engine_listen(sr_engine *e, int fd, bool is_unix);
void sr_engine_listeners(sr_engine *e, bool on); /* into the epoll set, or out of it */
void sr_engine_pause(sr_engine *e);              /* no descriptor, memory or room: left alone for 100 ms */
void sr_engine_resume(sr_engine *e);             /* when that time is over; before a wait */

void sr_engine_tick(sr_engine *e);                           /* reads the clock */
void sr_engine_publish(sr_engine *e, sr_worker_state state); /* what others see of this process */

/* No newcomers, short time limits for what is idle: called in each step of the loop. True: no connection is left. */
bool sr_engine_drain_step(sr_engine *e);

/* Keep the connection after this response? Decided when its head is made. */
bool sr_engine_keeps(const sr_engine *e, const sr_conn *c);

#endif
