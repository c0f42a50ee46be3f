#ifndef SR_COMMON_H
#define SR_COMMON_H
/*
 * common: what the edges of one server tell each other, for the limits that hold for all of them together,
 * and by what the supervisor sees whether they go on (lib/Sirius/Edge/Pulse.pm).
 *
 * Memory: shared by the edges only, and made by the supervisor; no worker can write it. A row is written by
 * the edge whose number it has, except `shed`. When an edge has ended, the supervisor clears its row. Order:
 * relaxed. Edges that act at the same moment may exceed a limit by what they do in that moment.
 */
#include "lane.h"
#include "sleepers.h"

typedef struct sr_common_row {
    _Alignas(64) _Atomic uint64_t connections; /* open now */
    _Atomic uint64_t waiting;                  /* complete requests that wait for a worker */
    _Atomic uint64_t running;                  /* requests that workers have */
    _Atomic int64_t oldest; /* monotonic ns at which its oldest idle connection will be closed; 0: none */
    _Atomic uint64_t idle;  /* idle connections */
    _Atomic uint32_t shed;  /* idle connections that others ask it to close; they ring its bell then */
    _Atomic int64_t
        turned; /* monotonic ns of the last turn of its loop, for the supervisor; 0: there was none */
    sr_lane_share lanes[SR_LANES_MAX];
} sr_common_row;

typedef struct sr_common {
    _Atomic uint64_t active; /* a bit for each edge that runs: an edge that is alone publishes nothing */
    sr_common_row row[SR_EDGES_MAX];
} sr_common;

/* The edge has ended, or begins: it is not active, and its row is empty. */
static inline void sr_common_clear(sr_common *c, uint32_t edge)
{
    atomic_fetch_and(&c->active, ~(UINT64_C(1) << edge));
    atomic_store(&c->row[edge].connections, 0);
    atomic_store(&c->row[edge].waiting, 0);
    atomic_store(&c->row[edge].running, 0);
    atomic_store(&c->row[edge].oldest, 0);
    atomic_store(&c->row[edge].idle, 0);
    atomic_store(&c->row[edge].shed, 0);
    atomic_store(&c->row[edge].turned, 0);
    for (unsigned i = 0; i < SR_LANES_MAX; i++)
        sr_lane_clear(&c->row[edge].lanes[i]);
}

#endif
