#ifndef SR_INTAKE_H
#define SR_INTAKE_H
/*
 * intake: reads until a request is complete.
 *
 * Called by: the loop of the edge. Closing: all functions here but sr_intake_close and those of HEAD may close and free the
 * connection.
 * Failure: a request that is malformed, too large or too slow is refused, and its connection ends.
 *
 * On a unix socket, the last byte that has come with an HTTP/1.0 request is used, but left in the socket (c->held)
 * until the response is complete. If the connection is closed before, or this process is killed, the peer gets
 * ECONNRESET behind what was sent, not an end of file that would be the end of a complete response: HTTP/1.0 has no
 * chunks, and a unix socket no other reset. sr_conn_release reads the byte. Where bytes follow a request of any version that was
 * looked at, the last of them is left for the request that they may be. A request of 1.0 that was read without that, which only the
 * first on the unix sockets of this process can be, is not served: its connection is closed.
 */
#include "../http/forwarded.h"
#include "../share/counters.h"
#include "exchange.h"

struct sr_engine;
struct sr_conn;

enum { SR_SCRATCH = 128 * 1024 }; /* bytes of one read; a request that fits is parsed here and copied once */

typedef struct sr_arrivals { /* private to conn/, but for the rest of a task */
    sr_link buffered;        /* connections of whose next request bytes were read already */
    char *scratch;           /* SR_SCRATCH bytes; owned */
    sr_request request;      /* scratch of the parser */
    sr_forwarded forwarded;
    struct sr_conn *current; /* connection of the task at hand; NULL: none */
    bool in_scratch;         /* the bytes of the task lie in scratch, not in current->in */
    size_t used;             /* bytes of the view that are the request */
    sr_bytes view;
    sr_bytes fresh;                 /* the bytes that were read last, in scratch */
    const struct sr_conn *fresh_of; /* the connection that they are from; NULL: it is gone */
    bool looked;                    /* they are still in the socket */
    bool has_held;                  /* a request of HTTP/1.0 has come on a unix socket */
} sr_arrivals;

/* A complete request. The pointers are valid until sr_intake_close or sr_intake_refuse. */
typedef struct sr_task {
    struct sr_exchange *exchange;
    const sr_request *request;
    const char *base; /* the bytes that the spans of the request point into */
    sr_bytes body;    /* a body in memory, maybe empty */
    int body_fd; /* a body in a file, from offset 0, which belongs to the caller as sr_body_take says; -1: it is in memory */
    uint64_t body_length;

    const sr_forwarded *forwarded; /* what trusted proxies say of scheme, host and port; NULL: nothing */
} sr_task;

typedef enum sr_intake {
    SR_INTAKE_WAIT,  /* no request: the connection waits for events, or is closed */
    SR_INTAKE_READY, /* a request: the caller closes or refuses the task before the next call */
} sr_intake;

sr_intake sr_intake_readable(struct sr_engine *e, struct sr_conn *c, sr_task *task); /* a socket has bytes */
sr_intake sr_intake_buffered(struct sr_engine *e, struct sr_conn *c,
                             sr_task *task); /* bytes were read already */

/* Before a request is complete: whether it is HEAD, as far as it has arrived. */
bool sr_intake_is_head(const struct sr_conn *c);
bool sr_intake_bytes_are_head(sr_bytes view);

/* The task was copied: drops its bytes, and keeps those after them for the next request. */
void sr_intake_close(struct sr_engine *e, struct sr_conn *c);

/* Closes the file of the body, if there is one: nobody needs it. */
void sr_intake_drop(sr_task *task);

/* Nobody can serve the task: answers with `status`, which is logged and counted as `why`, then ends the connection. */
void sr_intake_refuse(struct sr_engine *e, sr_task *task, int status, sr_refusal why);
/* The same for a request that breaks this rule; see sr_finish_refuse_by. */
void sr_intake_refuse_by(struct sr_engine *e, sr_task *task, int status, sr_refusal why, const char *rule);

#endif
