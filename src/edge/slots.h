#ifndef SR_EDGE_SLOTS_H
#define SR_EDGE_SLOTS_H
/* slots: how many of the queue hold a request. For all files of the edge. */
#include "edge.h"

/* Waiting or running. */
static inline uint32_t sr_slots_used(const sr_edge *ed)
{
    return ed->slots - ed->queue.n_free;
}

/* Of these, what is in the queue or with a worker; the others wait in lanes, or for their turn. */
static inline uint64_t sr_slots_given(const sr_edge *ed)
{
    return sr_slots_used(ed) - ed->turns.unnumbered;
}

#endif
