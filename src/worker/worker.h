#ifndef SR_WORKER_H
#define SR_WORKER_H
/*
 * worker: a process that takes complete requests from the edges, one at a time, and replies. It has no socket of a client,
 * no thread and no lock.
 *
 *     while ((what = sr_worker_next(w, &request)) == SR_WORKER_REQUEST) {
 *         ... application ...
 *         sr_worker_reply(w, &head, fields, body, n, true);
 *         sr_worker_done(w);
 *     }
 *
 * Owner: one process, one thread; sr_worker_wake, _drain and _stop are for signal handlers too. Fork: a child of the
 * application may call nothing here. Failure: an edge that has died is noticed by what follows; its replies are thrown
 * away, and a new edge is greeted by the next call of sr_worker_next. Edges come and go; while one has not answered, the
 * requests of the others are served. Of all that wait, the oldest is taken first.
 */
#include "../base/bytes.h"
#include "../share/door.h"
#include "../share/queue.h"
#include "../share/reply.h"
#include "../share/sleepers.h"

#include <sys/uio.h>

typedef struct sr_worker_config {
    sr_sleepers *sleepers; /* the caller's, outlives the worker */
    uint32_t row;
    int64_t look_ns; /* so often sr_worker_next returns SR_WORKER_WAKE, if nothing else comes; 0: never */
} sr_worker_config;

typedef struct sr_worker_line {
    int line;          /* -1: there is none */
    int bell;          /* eventfd of the edge */
    bool asked;        /* hello was said, and the answer has not come */
    bool silent;       /* something is in the ring and the edge was not told */
    int64_t again_at;  /* monotonic ns of the next attempt to say hello; 0: none before another epoch */
    sr_consumer queue; /* requests NULL: not open */
} sr_worker_line;

typedef enum sr_worker_what {
    SR_WORKER_REQUEST,
    SR_WORKER_WAKE, /* a signal, or sr_worker_wake: look around, then call again */
    SR_WORKER_DONE, /* drained or stopped */
} sr_worker_what;

typedef enum sr_leaving { SR_LEAVING_NO, SR_LEAVING_DRAIN, SR_LEAVING_STOP } sr_leaving;

typedef struct sr_worker {
    sr_sleepers *sleepers;
    uint32_t row;
    sr_worker_line edges[SR_EDGES_MAX]; /* by their numbers */
    sr_worker_line *open[SR_EDGES_MAX]; /* those of them that have answered */
    unsigned n_open;
    uint32_t epoch; /* at the last look for edges */
    bool looked;
    _Atomic int leaving; /* sr_leaving */
    _Atomic int woken;
    bool unmet; /* an edge has not answered yet, or is to be asked again */
    /* Set by the caller after open, or NULL: while a reply waits. False: it waits no longer, and the call returns false. */
    bool (*interrupted)(void);

    /* the request at hand */
    sr_worker_line *from; /* NULL: none */
    const sr_slot *slot;
    uint32_t index;
    uint64_t number;
    void *spilled; /* a mapping of the file that it came in, or NULL */
    size_t spilled_bytes;
    int64_t began;
    bool lost;      /* its edge is gone: what is written goes nowhere */
    bool timed_out; /* a request took too long: somebody will end this process, so it takes no more */

    int64_t look_ns;
    int64_t now;
    int64_t service_ns; /* its recent time a request, a moving average over 8 */
    int64_t told_at;    /* when the edge was last told of replies */
} sr_worker;

/* A request, until sr_worker_done. */
typedef struct sr_worker_request {
    const sr_slot *slot;
    const sr_request *request;
    const char *base; /* bytes that the spans of request point into */
    sr_bytes body;    /* when it is in memory */
    int body_fd;      /* or -1: a file, from offset 0, the caller's */
} sr_worker_request;

/* 0 or errno. Waits for the first edge, unless the server is gone, or something else is to be done. */
int sr_worker_open(sr_worker *w, const sr_worker_config *config);
void sr_worker_close(sr_worker *w);

sr_worker_what sr_worker_next(sr_worker *w, sr_worker_request *out);

void sr_worker_wake(sr_worker *w);
void sr_worker_drain(sr_worker *w);
void sr_worker_stop(sr_worker *w);

/* --- the reply to the request at hand --- */

/*
 * The head, and the first of the body, or all of it (last). `status` 1xx: an interim response, without a body. False: there
 * is no edge or no client any more, or the fields are larger than SR_REPLY_FIELDS_MAX.
 */
enum { SR_REPLY_FIELDS_MAX = 16 * 1024 * 1024 };
bool sr_worker_reply(sr_worker *w, const sr_reply_head *head, sr_bytes fields, const struct iovec *body,
                     int n, uint16_t flags);
/* Values of its line in the access log, see share/reply.h: before the last record. */
void sr_worker_log(sr_worker *w, sr_bytes run);
/* More of the body. Waits while the edge has not taken it, and, if `paced`, while the client is behind. */
bool sr_worker_write(sr_worker *w, const struct iovec *body, int n, bool paced);
/* All of the body, behind a head. The descriptor stays the caller's. False: nothing of it was sent, nor will be. */
bool sr_worker_file(sr_worker *w, int fd, uint64_t offset, uint64_t length);
void sr_worker_say(sr_worker *w, sr_reply_kind kind); /* END, CUT or TAKEN */
/* The edge sends what was replied at once: the application goes on, or sleeps. */
void sr_worker_flush(sr_worker *w);
void sr_worker_flush_all(sr_worker *w); /* likewise, of all requests that are done */
/*
 * A descriptor of the client's socket, the caller's, and a file with the bytes that were read ahead (-1: none). The connection
 * is not kept after this. False: it is gone.
 */
bool sr_worker_socket(sr_worker *w, int *socket, int *ahead, uint32_t *bytes);

/*
 * What the edge answers to a note about the request at hand, and to no other. 0 or errno; fds and n as in sr_door_receive.
 */
int sr_worker_answer(sr_worker *w, sr_message_kind kind, sr_message *note, int *fds, int *n);
void sr_worker_unread(sr_worker *w, int why); /* it could not be had: errno */

/* All is said of the request at hand; its memory is the edge's again. */
void sr_worker_done(sr_worker *w);

#endif
