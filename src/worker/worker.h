#ifndef SR_WORKER_H
#define SR_WORKER_H
/*
 * worker: takes complete requests from the edges, one at a time, and replies. It has no socket of a client,
 * no thread and no lock.
 *
 *     while ((what = sr_worker_next(w)) == SR_WORKER_REQUEST) {
 *         ... application ...
 *         sr_worker_reply(w, &head, fields, body, n, SR_REPLY_LAST);
 *         sr_worker_done(w);
 *     }
 *
 * Edges come and go. While one has not answered a hello, the requests of the others are served. Of all
 * requests that wait, the oldest is taken first.
 *
 * Owner: one process, one thread. sr_worker_wake, _drain and _stop may be called by signal handlers too.
 * Fork: a child of the application serves nothing. What it calls here does nothing, however it was forked,
 * and sr_worker_next returns DONE.
 * Whole or cut: once a part of a reply could not be sent, whatever the reason, nothing more of it is, and its
 * end is SR_REPLY_CUT, whatever the caller says. The end itself is never left out: it waits for room as long
 * as the edge lives.
 * Failure: the next call notices that an edge has died. Replies to its requests are dropped, and the next
 * sr_worker_next says hello to the edge that replaces it.
 */
#include "../base/bytes.h"
#include "../http/traced.h"
#include "../share/door.h"
#include "../share/queue.h"
#include "../share/reply.h"
#include "../share/sleepers.h"

#include <sys/uio.h>

typedef struct sr_worker_config {
    sr_sleepers *sleepers; /* the caller's; outlives the worker */
    uint32_t row;
    uint32_t generation; /* see sr_sleepers_hold */
    int64_t look_ns; /* sr_worker_next returns SR_WORKER_WAKE so often, if nothing else happens; 0: never */
} sr_worker_config;

typedef struct sr_worker_line { /* to one edge */
    int line;                   /* see share/door.h; -1: there is none */
    int bell;                   /* eventfd that wakes the edge */
    uint64_t line_is, bell_is;  /* what they stand for: sr_descriptors_what */
    int32_t pid;                /* of the edge, as the kernel says */
    bool asked;                 /* hello was said, and the answer has not come */
    bool silent;                /* the ring has records, and the edge was not woken for them */
    int64_t told_at;            /* monotonic ns at which it was last woken for replies */
    int64_t again_at;           /* monotonic ns at which to say hello again; 0: not before another epoch */
    sr_consumer queue;          /* `requests` NULL: not open */
} sr_worker_line;

typedef enum sr_worker_what {
    SR_WORKER_REQUEST,
    SR_WORKER_WAKE, /* a signal, or sr_worker_wake: do what is to be done, then call again */
    SR_WORKER_DONE, /* drained or stopped, or the server is gone */
} sr_worker_what;

typedef enum sr_leaving { SR_LEAVING_NO, SR_LEAVING_DRAIN, SR_LEAVING_STOP } sr_leaving;

/* A request, valid until sr_worker_done. */
typedef struct sr_worker_request {
    const sr_slot *slot;
    const sr_request *request;
    const char *base; /* the bytes that the spans of the request point into */
    sr_bytes body;    /* if it is in memory */
    int body_fd;      /* a file, from offset 0, which belongs to the caller; -1: it is in memory */
    sr_bytes facts;   /* about the encrypted connection (share/facts.h); empty: it is not encrypted */
} sr_worker_request;

typedef struct sr_worker {
    sr_sleepers *sleepers;
    const _Atomic uint32_t *mine; /* 0 in a child, which has a copy of the rest: see sr_worker_is_child */
    uint32_t row;
    uint32_t generation;
    sr_worker_line edges[SR_EDGES_MAX]; /* by their numbers */
    sr_worker_line *open[SR_EDGES_MAX]; /* those whose queue is open */
    unsigned n_open;
    uint32_t epoch; /* of the sleepers, at the last look for edges */
    bool looked;
    _Atomic int leaving; /* sr_leaving */
    _Atomic int woken;
    uint32_t foreign; /* the layout of the queue of an edge that is of another version; 0: none has said so */
    bool unmet;       /* an edge has not answered yet, or is to be asked again */
    /*
     * Set by the caller after open, or NULL: called now and then while a reply waits for the client, so that
     * handlers of signals run. False: the reply waits no longer, and its call returns false.
     */
    bool (*interrupted)(void);

    /* the request at hand */
    sr_worker_line *from; /* NULL: there is none */
    sr_worker_request request;
    uint32_t index; /* of its slot */
    uint64_t number;
    void *spilled; /* mapping of the file that the request came in; NULL: it is in the slot */
    size_t spilled_bytes;
    int64_t began;  /* monotonic ns */
    bool in_lane;   /* its edge is told when it is done */
    bool lost;      /* its edge is gone: replies are dropped */
    bool dropped;   /* a part of the reply was not sent, so nothing more is, and its end is CUT */
    bool timed_out; /* it took too long: this process will be killed, and takes no other */
    bool cut_off;   /* the line or the bell of an edge was closed in this process, which ends */

    int64_t look_ns;
    int64_t now;        /* monotonic ns */
    int64_t service_ns; /* time for a request, as a moving average over 8 */
    int64_t ask_at;     /* monotonic ns before which the edge need not look for the client again */
} sr_worker;

/* Waits for the first edge, unless the server is gone or the worker is woken. Returns 0 or errno. */
int sr_worker_open(sr_worker *w, const sr_worker_config *config);
void sr_worker_close(sr_worker *w);

/*
 * In a child that has just been forked, for pthread_atfork: where the kernel can't tell children (before
 * Linux 4.14), nothing else does. Safe in a handler of a signal.
 */
void sr_worker_forked(sr_worker *w);

/* Waits for a request, which is in w->request then. */
sr_worker_what sr_worker_next(sr_worker *w);

/* From signal handlers: the next sr_worker_next returns WAKE; or DONE, after the request at hand. */
void sr_worker_wake(sr_worker *w);
void sr_worker_drain(sr_worker *w);
void sr_worker_stop(sr_worker *w);

/*
 * The id that the server makes of the request at hand, also when the reply is complete. As in the logs of its
 * edge.
 */
sr_bytes sr_worker_made_id(const sr_worker *w, char out[SR_REQUEST_ID_MADE]);

/*
 * Hands an item (share/item.h) to all edges, in the order of the calls, with or without a request at hand.
 * Waits for room as the end of a reply does. False: that is not possible now, and no edge has got it: this is
 * a child, or an edge that has come does not answer.
 */
bool sr_worker_publish(sr_worker *w, sr_bytes packed);

/* --- the reply to the request at hand --- */

/*
 * The head, and the beginning of the body; all of the body with SR_REPLY_LAST. A status of 1xx is an interim
 * response, without a body. False: edge or client is gone, or the fields have more than SR_REPLY_FIELDS_MAX
 * bytes.
 */
bool sr_worker_reply(sr_worker *w, const sr_reply_head *head, sr_bytes fields, const struct iovec *body,
                     int n, uint16_t flags);

/* Before the head: the response is to be held, as these Grip fields say, which were checked (http/grip.h). */
void sr_worker_hold(sr_worker *w, sr_bytes lines);

/* Values for its line in the access log (share/reply.h). Call it before the last record. */
void sr_worker_log(sr_worker *w, sr_bytes run);

/*
 * More of the body. Waits until the edge has taken it, and, if `paced`, until the client is not far behind.
 */
bool sr_worker_write(sr_worker *w, const struct iovec *body, int n, bool paced);

/*
 * There is nothing to write, and maybe never will be: lets the edge send what was written, and look for the
 * client now and then.
 * False: edge or client is gone.
 */
bool sr_worker_ask(sr_worker *w);

/*
 * A file as the whole body, after a head. The descriptor stays the caller's, who may do with it and with the
 * file what it likes: the client gets the bytes that the file has now. False: that can't be said of this
 * file, or it can't be passed; nothing of it was or will be sent.
 */
bool sr_worker_file(sr_worker *w, int fd, uint64_t offset, uint64_t length);

/* SR_REPLY_END, _CUT or _TAKEN. END becomes CUT if a part of the reply was not sent. */
void sr_worker_say(sr_worker *w, sr_reply_kind kind);

/*
 * Wakes the edge for what was replied, since the application goes on or sleeps. Otherwise that happens after
 * some requests.
 */
void sr_worker_flush(sr_worker *w);
void sr_worker_flush_all(sr_worker *w); /* the same for all edges, after requests that are done */

/*
 * The socket of the client (psgix.io), and a file of `bytes` bytes that were read ahead (-1: none). Both
 * descriptors are the caller's. The connection is not kept after this. False: the client is gone.
 */
bool sr_worker_socket(sr_worker *w, int *socket, int *ahead, uint32_t *bytes);

/* The request could not be read: errno. */
void sr_worker_unread(sr_worker *w, int why);

/* The reply is complete, or given up. The memory of the request belongs to the edge again. */
void sr_worker_done(sr_worker *w);

#endif
