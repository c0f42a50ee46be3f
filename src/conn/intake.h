#ifndef SR_INTAKE_H
#define SR_INTAKE_H
/*
 * intake: what was read of requests, and the complete ones, which the edge takes.
 *
 * Owner: the engine. A task lies in its memory or in that of the connection, until the protocol is told that
 * it was taken.
 */
#include "../http/forwarded.h"
#include "../share/counters.h"
#include "exchange.h"

struct sr_engine;
struct sr_conn;

enum { SR_SCRATCH = 128 * 1024 }; /* bytes of one read; a request that fits is parsed here and copied once */

typedef struct sr_arrivals {
    sr_link buffered; /* connections of whose next request bytes were read already */
    char *scratch;    /* SR_SCRATCH bytes; owned */

    /* of the protocol; others read it, and accept.c sets what is fresh */
    sr_request request; /* scratch of the parser, and of conn/client.h */
    sr_forwarded forwarded;
    sr_buffer head;          /* of a request that came as fields (h2/request.h), until it is taken or kept */
    struct sr_conn *current; /* connection of the task at hand; NULL: none */
    bool in_scratch;         /* the bytes of the task lie in scratch, not in current->in */
    size_t used;             /* bytes of the view that are the request */
    sr_bytes view;
    sr_bytes fresh;                 /* the bytes that were read last, in scratch */
    const struct sr_conn *fresh_of; /* the connection that they are from; NULL: it is gone */
    bool looked;                    /* they are still in the socket */
    /*
     * frames that have come within what streams carry (sr_engine.came): who reads sets it to 0, and gives
     * others their turn after many
     */
    uint32_t frames;
    bool has_held; /* a request of HTTP/1.0 has come on a unix socket */
} sr_arrivals;

/* A complete request. The pointers are valid until it is taken or refused (protocol.h). */
typedef struct sr_task {
    struct sr_exchange *exchange;
    const sr_request *request;
    const char *base; /* the bytes that the spans of the request point into */
    sr_bytes body;    /* a body in memory, maybe empty */
    /*
     * a body in a file, from offset 0, which belongs to the caller as sr_body_take says; -1: it is in memory
     */
    int body_fd;
    uint64_t body_length;

    const sr_forwarded *forwarded; /* what trusted proxies say of scheme, host and port; NULL: nothing */
} sr_task;

typedef enum sr_intake {
    SR_INTAKE_WAIT, /* no request: the connection waits for events, or is closed */
    /* no request yet; bytes that were read wait for the next step of the loop (sr_arrivals.buffered) */
    SR_INTAKE_LATER,
    SR_INTAKE_READY, /* a request: the caller takes or refuses it before the next call */
} sr_intake;

/* Closes the file of the body, if there is one: nobody needs it. */
void sr_intake_drop(sr_task *task);

/*
 * Nobody can serve the task: answers with `status`, which is logged and counted as `why`, then ends the
 * connection. `rule` as for sr_protocol.refuse. Closing.
 */
void sr_intake_refuse(struct sr_engine *e, sr_task *task, int status, sr_refusal why, const char *rule);

#endif
