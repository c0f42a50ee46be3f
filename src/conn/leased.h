#ifndef SR_LEASED_H
#define SR_LEASED_H
/*
 * leased: files of applications that are being sent, and that their application may write to again. A worker
 * passes such a file with a lease (net/lease.h). Who wants to write to the file waits in the kernel, and the
 * engine gets a signal: it copies what is still to be sent to a temporary file, in steps, so that nobody else
 * waits for that, and gives the lease back. So the client gets the bytes that the file had when the
 * application answered, and the application need not wait for the client.
 *
 * The kernel does not wait for ever. Time counts from when the engine has noticed that somebody waits, for
 * each file; the copy whose time is over first is the first to be made. Nothing is sent of a file while
 * somebody waits for it, and a copy counts only if the lease was still there when it was complete: an engine
 * that was stopped meanwhile cuts the response, and mixes nothing.
 *
 * Owner: the engine; the descriptors are those of the outputs (output.h). Process: the edge. Thread: one.
 * Failure: when there is no room (spools.h), descriptor or time for the copy, or the kernel has taken the
 * lease away, the response is cut.
 */
#include "../base/list.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sr_engine;
struct sr_output;

typedef struct sr_leased {
    sr_link all;  /* outputs with a leased file */
    bool asked;   /* a lease is to be given back: look for the outputs that have it */
    bool broken;  /* there are outputs whose lease is to be given back */
    int64_t time; /* ns for a copy, less than the kernel has */

    /* the file that is being copied */
    int from, to;         /* from: -1: none. Owned */
    struct sr_copy *copy; /* what `to` has, as far as it is there. One of its users */
    dev_t dev;
    ino_t ino;
    off_t base, at, end; /* the bytes that are wanted of it, and how far the copy is */
    int64_t since;       /* monotonic ns: when it was noticed that somebody waits */
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
    return l->asked || l->broken;
}

#endif
