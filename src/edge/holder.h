#ifndef SR_HOLDER_H
#define SR_HOLDER_H
/* holder: which worker has which request. For all files of the edge. */
#include "edge.h"

/*
 * The row of the worker that has the request of the slot: as bound, else as the claim in the queue says. -1:
 * none.
 */
int32_t sr_holder(const sr_edge *ed, uint32_t slot);

/*
 * The worker speaks about the request `number` of the slot. True: it has that request, and from now on no
 * other worker is believed about it. False: the request is over or another worker's, or this worker has
 * another one.
 */
bool sr_holder_bind(sr_edge *ed, sr_edge_worker *m, uint32_t slot, uint64_t number);

#endif
