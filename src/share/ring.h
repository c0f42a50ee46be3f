#ifndef SR_RING_H
#define SR_RING_H
/*
 * ring: records that one worker writes for one edge, in shared memory, in order.
 *
 * One writer, the worker; one reader, the edge. A record is contiguous; where the end of the ring is too near
 * for it, a PAD fills the rest. `put` is written by the worker, `taken` by the edge; both count bytes and
 * wrap at 2^32. A record is there once `put` has moved past it, so the writer may be killed at any
 * instruction.
 *
 * Trust: the reader trusts nothing. It counts what it has taken by itself (sr_reader) and never reads
 * `taken`. It copies a record before looking at it; if something does not add up, that is SR_RING_BAD, and
 * nothing more of this ring is read.
 *
 * Memory: made by the edge for one worker, and given to no other. So neither another worker nor a child that
 * has outlived the last worker of the row can write it. No lock, and no system call except to sleep until
 * there is space.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SR_RING_BYTES = 64 * 1024,
    SR_RECORD_MAX = SR_RING_BYTES / 4, /* bytes of a record with its header: small, so that a PAD is small */
};

typedef struct sr_record {
    uint32_t bytes;  /* of the whole record, this header included, before it is rounded up to 8 */
    uint16_t kind;   /* the caller's; 0: PAD */
    uint16_t flags;  /* the caller's */
    uint64_t number; /* of the request that the record is about */
    uint32_t slot;   /* of that request */
    uint32_t unused;
} sr_record;

typedef struct sr_ring {
    _Alignas(64) _Atomic uint32_t put;
    _Alignas(64) _Atomic uint32_t taken;
    _Atomic uint32_t space; /* futex: changes when the edge has taken something and the writer waits for it */
    _Atomic uint32_t wants; /* the writer waits */
    _Alignas(64) _Atomic uint64_t began; /* number of the request that the worker has last begun with */
    _Atomic int64_t began_at;            /* monotonic ns of that */
    _Atomic uint64_t
        done; /* number of the last request of a lane that it is done with, psgix.cleanup included */
    _Alignas(64) char data[SR_RING_BYTES];
} sr_ring;

/* --- its memory --- */

sr_ring *
sr_ring_new(int *fd);         /* an empty one. *fd is the caller's, and goes to the worker. NULL with errno */
sr_ring *sr_ring_map(int fd); /* in the worker. NULL with errno; EPROTO: it is not a ring */
void sr_ring_unmap(sr_ring *r);

/* --- the writer --- */

/*
 * Reserves a record with `payload` bytes after its header; header and payload are at most SR_RECORD_MAX.
 * NULL: there is no space now.
 */
sr_record *sr_ring_reserve(sr_ring *r, size_t payload);

/* The reserved record is complete. `payload` may be less than was reserved. */
void sr_ring_commit(sr_ring *r, sr_record *record, size_t payload);

/*
 * To wait for space: want, then look once more, then wait. `seen` is what want has returned. The wait ends
 * when the edge has taken something, at a signal, or after ns; the caller looks again.
 */
uint32_t sr_ring_want(sr_ring *r);
void sr_ring_wait(sr_ring *r, uint32_t seen, int64_t ns);

/* Bytes that the edge has not taken, as far as it says. */
uint32_t sr_ring_waiting(const sr_ring *r);

/* --- the reader --- */

typedef struct sr_reader {
    sr_ring *ring;
    uint32_t taken; /* bytes */
    uint32_t size;  /* of the record that sr_ring_next has returned, rounded up */
} sr_reader;

typedef enum sr_ring_result { SR_RING_NONE, SR_RING_RECORD, SR_RING_BAD } sr_ring_result;

void sr_reader_init(sr_reader *r, sr_ring *ring); /* for a ring that nobody has written to */

/*
 * The next record, without taking it: copies its header to *record after checking that it lies within the
 * ring. *payload points to the bytes after it, which may change at any time, but stay readable until
 * sr_ring_done.
 */
sr_ring_result sr_ring_next(sr_reader *r, sr_record *record, const char **payload);

bool sr_reader_waits(const sr_reader *r); /* something was not taken yet, well-formed or not */
void sr_ring_done(sr_reader *r);          /* takes the record that sr_ring_next has returned */

/* Wakes the writer if it waits for space. Call it when the reader stops reading for now. */
void sr_ring_tell(sr_reader *r);

#endif
