#ifndef SR_COMMON_H
#define SR_COMMON_H
/*
 * common: what the edges of one server tell each other, for the limits that are of all of them together.
 *
 * Memory: shared by the edges alone, made by the supervisor; no worker can write here. A row is written by the edge whose number
 * it has, but for `shed`; the supervisor clears it when that edge has ended. Relaxed: a limit may be exceeded by what several
 * edges do in one moment.
 */
#include "sleepers.h"

typedef struct sr_common_row {
    _Alignas(64) _Atomic uint64_t connections; /* open now */
    _Atomic uint64_t waiting;                  /* complete requests that wait for a worker */
    _Atomic int64_t
        oldest; /* monotonic ns at which its oldest idle connection will be closed; 0: it has none */
    _Atomic uint64_t idle;
    _Atomic uint32_t shed; /* idle connections that others ask it to close; they ring its bell then */
} sr_common_row;

typedef struct sr_common {
    _Atomic uint64_t active; /* a bit for each edge that there is: one that is alone says nothing */
    sr_common_row row[SR_EDGES_MAX];
} sr_common;

static inline void sr_common_clear(sr_common *c, uint32_t edge)
{
    atomic_fetch_and(&c->active, ~(UINT64_C(1) << edge));
    atomic_store(&c->row[edge].connections, 0);
    atomic_store(&c->row[edge].waiting, 0);
    atomic_store(&c->row[edge].oldest, 0);
    atomic_store(&c->row[edge].idle, 0);
    atomic_store(&c->row[edge].shed, 0);
}

#endif
