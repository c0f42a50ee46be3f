#ifndef SR_CALLS_H
#define SR_CALLS_H
/*
 * calls: counts each call of the application that has ended, with its time, in the table of paths
 * (share/paths.h).
 *
 * A call of four milliseconds or more counts for itself, one that has failed, and the first 64 of a second.
 * Of the others a sample is counted, as by a profiler: in each four milliseconds that they take, one instant
 * is chosen at random, and the call that it falls into counts, for as many as have its length in that time.
 * So each path gets its share, and a short call costs few instructions. A constant is added to the length of
 * each, so that no call stands for more than 128.
 */
#include "edge.h"

#define SR_CALLS_EACH_NS 4194304 /* one of these, 2^22 ns, has one instant of the sample */
#define SR_CALLS_LEAST_NS 32768  /* added to each */

enum { SR_CALLS_EXACT = 64 };

void sr_calls_open(sr_edge *ed);

/* Does what is left of sr_calls_ended. */
void sr_calls_count(sr_edge *ed, uint32_t slot, bool failed);

/*
 * The call for the request of the slot has ended, or its worker; before its entry is forgotten. `x` is its
 * exchange, if it has one. `failed`: not because of its status.
 */
static inline void sr_calls_ended(sr_edge *ed, uint32_t slot, const sr_exchange *x, bool failed)
{
    if (!failed && x && x->status < 500) {
        int64_t ns =
            ed->engine->now - x->given_at; /* without a call this is the time since the machine was started */
        if (ns < SR_CALLS_EACH_NS && (ed->calls.left -= ns + SR_CALLS_LEAST_NS) > 0)
            return;
    }
    sr_calls_count(ed, slot, failed);
}

#endif
