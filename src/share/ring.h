#ifndef SR_RING_H
#define SR_RING_H
/*
 * ring: what one worker writes to one edge: records in the order they were written, in shared memory.
 *
 * One writer (the worker), one reader (the edge). A record lies in one piece; where the end of the ring is too near,
 * a PAD fills it. `put` is written by the worker, `taken` by the edge; both count bytes and wrap at 2^32.
 *
 * The reader believes nothing: it keeps its own count of what it has taken (sr_reader) and never reads `taken`; a record is
 * copied out before it is looked at, and what does not add up is SR_RING_BAD, after which nothing more of this ring is read.
 * The writer may be killed at any instruction: a record is there when `put` has moved behind it, and not before.
 *
 * Memory: of its own, made by the edge for one worker at its hello and given to no other, so that neither another worker nor
 * a child that has outlived the last worker of this row can write here. No lock, no system call but the sleep of a writer that
 * finds no room.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SR_RING_BYTES = 64 * 1024,
    SR_RECORD_MAX = SR_RING_BYTES / 4, /* a record with its header: small enough that a PAD is never much */
};

typedef struct sr_record {
    uint32_t bytes; /* of the whole record with this header, before it is rounded up to 8 */
    uint16_t kind;  /* the caller's, but 0: PAD */
    uint16_t flags;
    uint64_t number; /* the request it speaks of */
    uint32_t slot;
    uint32_t unused;
} sr_record;

typedef struct sr_ring {
    _Alignas(64) _Atomic uint32_t put;
    _Alignas(64) _Atomic uint32_t taken;
    _Atomic uint32_t space; /* futex: another number when the edge has taken something a writer waits for */
    _Atomic uint32_t wants;
    _Alignas(64) _Atomic uint64_t
        began;                /* number of the request that its worker has last handed to the application */
    _Atomic int64_t began_at; /* when; monotonic ns */
    _Alignas(64) char data[SR_RING_BYTES];
} sr_ring;

/* --- its memory --- */

sr_ring *sr_ring_new(int *fd); /* empty; NULL: errno. *fd is the caller's: it goes to the worker */
sr_ring *sr_ring_map(int fd);  /* as the worker got it; NULL: errno (EPROTO: that is no ring) */
void sr_ring_unmap(sr_ring *r);

/* --- the writer --- */

/* Room for a record with `payload` bytes behind its header, or NULL: there is none now. payload + header <= SR_RECORD_MAX */
sr_record *sr_ring_reserve(sr_ring *r, size_t payload);
/* The reserved record is whole now; `payload` may be less than was reserved. */
void sr_ring_commit(sr_ring *r, sr_record *record, size_t payload);
/* Until the edge has taken something, a signal or ns: the caller looks again. */
void sr_ring_wait(sr_ring *r, uint32_t seen, int64_t ns);
/* What sr_ring_wait compares: read before the look that found no room. Tells the edge that somebody waits. */
uint32_t sr_ring_want(sr_ring *r);
uint32_t sr_ring_waiting(const sr_ring *r); /* bytes that the edge has not taken, as far as it says */

/* --- the reader --- */

typedef struct sr_reader {
    sr_ring *ring;
    uint32_t taken;
    uint32_t size; /* of the record that sr_ring_next has shown, rounded */
} sr_reader;

typedef enum sr_ring_result { SR_RING_NONE, SR_RING_RECORD, SR_RING_BAD } sr_ring_result;

void sr_reader_init(sr_reader *r, sr_ring *ring); /* of a ring that nobody has written to */

/*
 * The next record: its header is copied to *record, whose bytes are within the ring and sound; *payload points behind it
 * and may change at any time, but stays readable until sr_ring_done. Nothing is taken yet.
 */
sr_ring_result sr_ring_next(sr_reader *r, sr_record *record, const char **payload);
bool sr_reader_waits(const sr_reader *r); /* there is something that was not taken, sound or not */
void sr_ring_done(sr_reader *r);          /* the record that next has shown is taken */
/* Somebody waits for what was taken since: call it when the reader has done for now. */
void sr_ring_tell(sr_reader *r);

#endif
