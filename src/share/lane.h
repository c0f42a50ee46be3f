#ifndef SR_LANE_H
#define SR_LANE_H
/*
 * lane: what processes share about the lanes of --lane: edges about places, in sr_common, and an edge with
 * those who look at it, in the scoreboard. An edge knows a lane of another by `key`, since their numbers
 * differ while a reload changes --lane.
 *
 * Writer: one edge. When it has ended, the supervisor clears what is now, so the places of an edge that was
 * killed are free.
 */
#include <stdatomic.h>
#include <stdint.h>

enum {
    SR_LANES_MAX = 16,
    SR_LANE_TEXT_MAX = 127, /* bytes of what --lane says in front of "=N" */
};

/* For the other edges. Order: sequentially consistent, see src/edge/lanes.c. */
typedef struct sr_lane_share {
    _Atomic uint64_t key; /* of its text; 0: there is no such lane */
    /* places that this edge has: requests in the queue, with workers, or about to be put there */
    _Atomic uint64_t running;
    _Atomic uint64_t waiting; /* requests that wait for a place */
    _Atomic int64_t first;    /* monotonic ns at which the first of them was complete; 0: none waits */
    _Atomic uint64_t taken;   /* requests that have got a place */
} sr_lane_share;

/* For the status page. Order: relaxed. */
typedef struct sr_lane_row {
    _Atomic uint64_t
        text[(SR_LANE_TEXT_MAX + 1) / sizeof(uint64_t)]; /* NUL-terminated; "": there is no such lane */
    _Atomic uint64_t limit, queue_limit, timeout_ns;     /* as --lane says */
    _Atomic uint64_t running, waiting;
    _Atomic int64_t first;      /* as above */
    _Atomic uint64_t requests;  /* that have had a place, since this edge and those before it have started */
    _Atomic uint64_t waited_ns; /* these for it, all together */
    _Atomic uint64_t full;      /* requests refused: the queue of the lane was full */
    _Atomic uint64_t late;      /* requests refused: they had waited too long */
} sr_lane_row;

/* The edge has ended: what it has counted stays. */
static inline void sr_lane_clear(sr_lane_share *share)
{
    atomic_store(&share->running, 0);
    atomic_store(&share->waiting, 0);
    atomic_store(&share->first, 0);
    atomic_store(&share->taken, 0);
    atomic_store(&share->key, 0);
}

#endif
