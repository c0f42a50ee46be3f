#ifndef SR_ENGINE_H
#define SR_ENGINE_H
/*
 * engine: one worker's connections and the loop that drives them.
 *
 * Inverted: the embedder asks for the next request, lets the helm go, calls the application, takes the helm
 * back and hands the response over. No frame of the engine is on the stack while application code runs, so
 * die, exit and longjmp of an application cross nothing.
 *
 *     while ((what = sr_engine_next(e, &task)) == SR_NEXT_REQUEST) {
 *         copy what is needed out of task;
 *         sr_engine_lend(e);                    the helm is let go, task's bytes are gone
 *         ... application ...
 *         sr_engine_return(e);                  the helm is back
 *         sr_engine_send(e, ...); sr_engine_finish(e, ...);
 *     }
 *
 * Thread: every call needs the helm unless it says otherwise; sr_engine_next takes it when the caller does
 * not have it. Fork: a child of this process that is not a worker must not call anything but
 * sr_engine_forked; see there.
 */
#include "../base/resident.h"
#include "../http/date.h"
#include "../http/response.h"
#include "../net/exchange.h"
#include "accesslog.h"
#include "config.h"
#include "connection.h"
#include "helm.h"
#include "scoreboard.h"

#include <signal.h>

enum {
    SR_SOURCE_WAKE,
    SR_SOURCE_CONTROL,
    SR_SOURCE_BELL,
    SR_SOURCE_LISTENER,
    SR_SOURCE_EXCHANGE,
    SR_SOURCE_CONN,
    SR_SOURCE_LOG
};

enum {
    SR_LISTENERS_MAX = 64,
    SR_SCRATCH = 128 * 1024, /* one read; a request that fits is served from here and never copied */
};

typedef enum sr_deadline_kind { /* one list each, in order of time, since the time limit of a kind is constant
                                 */
                                SR_DEADLINE_HEAD,
                                SR_DEADLINE_BODY,
                                SR_DEADLINE_IDLE,
                                SR_DEADLINE_WRITE,
                                SR_DEADLINE_QUEUE,
                                SR_DEADLINE_LINGER,
                                SR_DEADLINE_LOOK, /* in an edge: a request waits, is its client still there? */
                                SR_DEADLINE_CALL,   /* likewise: it is with a worker */
                                SR_DEADLINE_STREAM, /* likewise: its response has begun */
                                SR_DEADLINE_KINDS,
} sr_deadline_kind;

typedef struct sr_listener {
    sr_source source; /* kind SR_SOURCE_LISTENER; the descriptor is the supervisor's and is not closed here */
    bool registered;
    bool is_unix;
    bool over; /* shut down by the supervisor: nobody comes any more, and it is readable for ever */
} sr_listener;

/* Of this process's descriptors: see room.c. */
typedef struct sr_table {
    int spare;  /* that newcomers leave for one message of the exchange */
    int scarce; /* a descriptor of this number or above is one of them */
    int others; /* that are not connections, when they were last counted */
    int high;   /* connections whose descriptor is scarce */
} sr_table;

#define SR_NO_LIMIT (INT64_MAX / 4) /* ns; may be added to a time */

typedef enum sr_drain { SR_DRAIN_NO, SR_DRAIN_ASKED, SR_DRAIN_NOW } sr_drain;

typedef enum sr_reason { SR_REASON_NONE, SR_REASON_REQUESTS, SR_REASON_RSS, SR_REASON_OVERDUE } sr_reason;

typedef struct sr_engine {
    /* shared with the companion without the helm; who writes is said in companion.h */
    _Atomic uint32_t turn;  /* odd: a request is with the application; each change is a new value. A futex */
    _Atomic uint32_t wants; /* the Perl thread waits for the helm */
    _Atomic uint32_t asks;  /* and the companion */
    _Atomic uint32_t parked;
    _Atomic uint32_t driving;
    _Atomic uint32_t leaving;
    _Atomic int drain; /* sr_drain; also written by signal handlers */
    int nudge;         /* eventfd: the call is over */
    _Atomic int64_t
        lent_at; /* when application code was last entered: e->now then, written by the Perl thread */
    _Atomic int64_t no_slow_at; /* scoreboard->slow_at without a scoreboard */
    pthread_t companion;
    bool has_companion;
    bool helm_held; /* by the Perl thread; touched by that thread only */
    /* and by handlers of signals on it: between the two calls below or about to be, and waiting for a slow reader */
    volatile sig_atomic_t inside, waiting;
    bool forked; /* set in a forked child, where nothing here may be used */

    /*
     * Set by the embedder after new; NULL: nothing. A signal came while the Perl thread waits for a slow reader; called
     * there, without the helm. False: wait no longer, the response is given up. It must return.
     */
    bool (*interrupted)(void);
    /* Likewise, of an edge: a connection with a slot is about to be closed, or answered by the engine itself */
    void (*left)(void *with, sr_conn *c);
    /* its SR_DEADLINE_QUEUE, LOOK, CALL or STREAM has come; false: it has waited too long and is to be refused */
    bool (*expired)(void *with, sr_conn *c, sr_deadline_kind kind);
    uint64_t (*others)(void *with); /* connections of other edges, which count for max_connections */
    /* one of them makes room, if its oldest idle connection is older than this time of ours; 0: ours has none */
    bool (*shed)(void *with, int64_t oldest);
    void (*stuck)(void *with); /* this edge can't accept now: others are to look */
    void *with;
    sr_helm helm;

    /* all that follows: with the helm */
    sr_config config;
    sr_loop loop;
    sr_source control; /* pipe to the supervisor; -1: none. Its end of file means drain */
    bool orphaned;     /* that end of file has come */
    sr_source bell;    /* of our row; -1: none */
    sr_exchange exchange;
    sr_source takes; /* exchange.take in the epoll set */
    bool takes_registered;
    bool stepping;    /* the companion takes events: what is complete must wait for a worker */
    int64_t swept_at; /* when the companion last looked for requests that are too old in the exchange */
    sr_listener listeners[SR_LISTENERS_MAX];
    unsigned n_listeners;
    bool listening; /* the listeners are in the epoll set */
    int64_t
        queues_again; /* for want of descriptors or memory listeners and exchange are out until then; 0: they are not */
    sr_table table;
    bool
        made_room; /* an idle connection was closed for want of a descriptor, and accept is to be tried again */
    int64_t retry_at; /* connections are to be given away and the exchange was full; 0: none */

    struct epoll_event events[SR_LOOP_EVENTS]; /* the batch at hand: [event, n_events) is still to do */
    int event, n_events;
    unsigned served_from_turns; /* since the last epoll_wait: bounded, so that pipelining starves nobody */

    sr_link all;   /* every connection */
    sr_link turns; /* connections whose next request is here already */
    sr_link deadlines[SR_DEADLINE_KINDS];
    int64_t limit[SR_DEADLINE_KINDS]; /* ns */
    uint32_t running;                 /* a bit for each kind whose list may have somebody in it */
    uint64_t n_conns;
    uint64_t n_idle, n_waiting; /* lengths of two deadline lists: IDLE and QUEUE */
    size_t pending;             /* bytes of memory in outputs */

    int64_t now; /* monotonic ns, read once a turn */
    int64_t wall;
    int64_t wall_offset; /* wall clock minus monotonic, ns; renewed each second */
    char date[SR_DATE_LEN];
    int64_t window_at;   /* start of the present window of sr_surplus_window */
    int64_t window_idle; /* ns of it without anything to do */
    bool busy;           /* a good part of the window before was work */
    int64_t looked_at;   /* when it last looked for a free colleague */
    int64_t service_ns;  /* its own recent time per request, a moving average over 8 */

    sr_conn *serving;      /* whose request is with the application, until finish, abort or detach */
    sr_buffer served_head; /* of its request, for the log; only where a time limit may end it. Owned */
    sr_conn *current;      /* of the task at hand, until lend */
    bool current_borrowed; /* the task's bytes lie in scratch, not in current->in */
    size_t current_used;   /* bytes of the view that are the request */
    sr_bytes current_view;
    uint64_t served;
    bool retiring;    /* a limit is reached, or asked by the application */
    sr_reason reason; /* of retiring, once a limit is reached */
    sr_reason soon;   /* of what will soon be reached */
    bool soon_said;
    sr_resident resident;
    uint64_t rss;        /* bytes after the last request, when there is a limit */
    int waited_too_long; /* status for a request whose SR_DEADLINE_QUEUE is over: 503, or 504 */

    sr_accesslog *log;       /* NULL: there is none */
    sr_bytes fresh;          /* the last bytes read of requests, in scratch */
    const sr_conn *fresh_of; /* from that connection; NULL: it is no more */

    sr_scoreboard *scoreboard; /* may be NULL */
    uint32_t n_rows;           /* of it that are workers with connections of their own */
    sr_row *row;               /* this worker's, or a private one; never NULL */
    sr_row no_row;

    sr_request request; /* scratch of the parser */
    char *scratch;      /* SR_SCRATCH bytes */

    sr_forwarded forwarded; /* of the task at hand */
} sr_engine;

/* What a request is to the embedder. All pointers die with sr_engine_lend. */
typedef struct sr_task {
    sr_conn *conn;
    const sr_request *request;
    const char *base; /* the bytes that request's spans point into */
    sr_bytes body;    /* a body in memory, maybe empty */
    int body_fd;      /* or -1: a body in a file, from offset 0; the embedder owns it now */
    uint64_t body_length;

    const sr_forwarded *forwarded; /* into base; NULL: nothing is known of scheme, host and port */
} sr_task;

typedef enum sr_next {
    SR_NEXT_REQUEST,
    SR_NEXT_WAKE, /* a signal, sr_engine_wake, or it retires now: look around, then call again */
    SR_NEXT_SOON, /* once: engine->soon is near, a successor should be made ready. Then call again */
    SR_NEXT_DONE, /* drained or stopped: no more requests will come */
} sr_next;

/*
 * 0 or errno. `control` is -1 or a descriptor whose end of file means drain. `slot` is this worker's row.
 * The engine is one allocation of about 150 KiB with its scratch; call in the process that will use it, after
 * fork.
 */
int sr_engine_new(sr_engine **out, const sr_config *config, sr_scoreboard *scoreboard, uint32_t slot,
                  int control);
void sr_engine_free(sr_engine *e); /* closes its connections; in a forked child it only frees memory */

/*
 * Before the first next: log each request there. `log` is malloc'ed, its first four members are set, and it is the
 * engine's from now on. 0 or errno.
 */
int sr_engine_log(sr_engine *e, sr_accesslog *log);
/* With a log: its file was moved away. What waits goes to the old descriptor; fd is the log's from now on. */
void sr_engine_log_to(sr_engine *e, int fd);
/*
 * With a log, before finish, abort or detach of this connection: where the values of its line are. Good until that
 * returns; what it returns must not run code of an application.
 */
void sr_engine_log_offer(sr_engine *e, const sr_conn *c, const sr_logsource *source);

/* Before the first next: the queue that is shared with the other workers. The descriptors stay the caller's.
 */
int sr_engine_exchange(sr_engine *e, int give, int take);

/* Before the first next. A listening, non-blocking socket; stays the caller's. 0 or errno (ENOSPC: too many).
 */
int sr_engine_listen(sr_engine *e, int fd, bool is_unix);

sr_next sr_engine_next(sr_engine *e, sr_task *task);
void sr_engine_lend(sr_engine *e);
void sr_engine_return(sr_engine *e);

/* Async-signal-safe, on the Perl thread: it is in the engine, and must not be taken out of it by a longjmp. */
static inline bool sr_engine_inside(const sr_engine *e)
{
    return (e->inside || e->waiting) && !e->forked;
}

/* Async-signal-safe, no helm needed. */
void sr_engine_wake(sr_engine *e);
/* Answer what has begun, give the rest to colleagues, or close it when the whole server ends, then SR_NEXT_DONE. */
void sr_engine_drain(sr_engine *e);
void sr_engine_stop(sr_engine *e); /* SR_NEXT_DONE as soon as next is called */

/* In this process no engine runs: it is a child that the application has forked. Any time. */
static inline bool sr_engine_forked(const sr_engine *e)
{
    return e->forked;
}

/* The head of the final response is made, and of so many bytes: for those who count. Before it is sent. */
static inline void sr_engine_head(sr_conn *c, int status, size_t bytes)
{
    c->status = (uint32_t)status;
    c->head_bytes = (uint32_t)bytes;
}

/*
 * The response of the current connection. Bytes go out in one system call when the socket takes them; the
 * rest is kept and flushed by the loop. After a failed write everything is accepted and thrown away,
 * conn->gone is set.
 */
void sr_engine_send(sr_engine *e, sr_conn *c, struct iovec *iov, int n);

/*
 * The same for a whole response that sr_engine_finish follows at once: when the connection closes behind it,
 * the kernel holds the bytes for the FIN and both go out as one segment.
 */
void sr_engine_send_last(sr_engine *e, sr_conn *c, struct iovec *iov, int n);

/* A file behind the head in iov: sendfile from the loop. fd is taken over. */
void sr_engine_send_file(sr_engine *e, sr_conn *c, struct iovec *head, int n, int fd, off_t offset,
                         uint64_t length);

/*
 * Returns when all of iov is in the kernel's hands: for streams, whose producer must not run ahead of a slow
 * reader. The helm is let go while it waits. False: the peer is gone or has not read for write_ns.
 */
bool sr_engine_write(sr_engine *e, sr_conn *c, struct iovec *iov, int n);

/* The same for an interim response (RFC 9110 15.2), behind which the whole response is still to come. */
bool sr_engine_write_interim(sr_engine *e, sr_conn *c, struct iovec *iov, int n);

/* The response is complete: the connection is kept when conn->keep_alive, else closed after its last byte. */
void sr_engine_finish(sr_engine *e, sr_conn *c);

/* The response can't be completed: cut the connection so that the peer sees it. */
void sr_engine_abort(sr_engine *e, sr_conn *c);

/* The application keeps the socket (psgix.io): forget it here without shutting it down. */
void sr_engine_detach(sr_engine *e, sr_conn *c);

/*
 * The application ended the process in the middle of everything: give away and flush what can be, for at most
 * `ns`. Nothing but sr_engine_free may follow.
 */
void sr_engine_evacuate(sr_engine *e, int64_t ns);

/* Finish the request at hand, take no more, then SR_NEXT_DONE. */
static inline void sr_engine_retire(sr_engine *e)
{
    e->retiring = true;
}

/* It takes no more connections: it is told to drain, or retires by itself. */
bool sr_engine_draining(const sr_engine *e);

/* Keep the connection after this response? Decided when its head is made. */
bool sr_engine_keeps(const sr_engine *e, const sr_conn *c);

#endif
