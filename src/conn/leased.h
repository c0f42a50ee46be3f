#ifndef SR_LEASED_H
#define SR_LEASED_H
/*
 * leased: files of applications that are being sent, and that their application may write to again. A worker passes such a
 * file with a lease (net/lease.h). Who wants to write to the file waits in the kernel, and the engine gets a signal: it copies what
 * is still to be sent to a temporary file, in steps, so that nobody else waits for that, and gives the lease back. So
 * the client gets the bytes that the file had when the application answered, and the application need not wait for the client.
 *
 * Owner: the engine; the descriptors are those of the outputs (output.h). Process: the edge. Thread: one.
 * Failure: when there is no room (spools.h), descriptor or time for the copy, the response is cut.
 */
#include "../base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sr_engine;
struct sr_output;

typedef struct sr_leased {
    sr_link all; /* outputs with a leased file */
    bool asked;  /* a lease is to be given back: look for the file */

    /* the file that is being copied */
    int from, to;         /* from: -1: none. Owned */
    struct sr_copy *copy; /* what `to` has, as far as it is there. One of its users */
    dev_t dev;
    ino_t ino;
    off_t base, at, end; /* the bytes that are wanted of it, and how far the copy is */
    int64_t until;       /* monotonic ns after which the kernel may let the others in */
} sr_leased;

void sr_leased_init(sr_leased *l);
void sr_leased_free(sr_leased *l); /* closes what is being copied */

/* The file of this output was passed with a lease. */
void sr_leased_add(struct sr_engine *e, struct sr_output *o);

/* In each step of the loop: copies at most a mebibyte. */
void sr_leased_step(struct sr_engine *e);

/* Whether a step has something to do. */
static inline bool sr_leased_waits(const sr_leased *l)
{
    return l->asked || l->from >= 0;
}

#endif
