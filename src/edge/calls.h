#ifndef SR_CALLS_H
#define SR_CALLS_H
/*
 * calls: counts each call of the application that has ended, with its time, in the table of paths (share/paths.h).
 *
 * A call of a millisecond or more counts for itself, and one that has failed. Of the others a sample is counted, as by a profiler: in each
 * millisecond that such calls take, one instant is chosen at random, and the call that it falls into counts, for as many as have its
 * length in a millisecond. So each path gets its share, and a short call costs some instructions. A constant is added to the length of
 * each, so that no call stands for more than 64.
 */
#include "edge.h"

#define SR_CALLS_EACH_NS 1048576 /* one of these, 2^20 ns, has one instant of the sample */
#define SR_CALLS_LEAST_NS 16384  /* added to each */

void sr_calls_open(sr_edge *ed);

/* Does what is left of sr_calls_ended. */
void sr_calls_count(sr_edge *ed, uint32_t slot, bool failed);

/*
 * The call for the request of the slot has ended, or its worker; before its entry is forgotten. `failed`: by an exception of the rule, not
 * because of its status.
 */
static inline void sr_calls_ended(sr_edge *ed, uint32_t slot, bool failed)
{
    const sr_exchange *x = ed->entries[slot].exchange;
    if (!failed && x && x->given_at && x->status < 500) {
        int64_t ns = ed->engine->now - x->given_at;
        if (ns < SR_CALLS_EACH_NS && (ed->calls.left -= ns + SR_CALLS_LEAST_NS) > 0)
            return;
    }
    sr_calls_count(ed, slot, failed);
}

#endif
