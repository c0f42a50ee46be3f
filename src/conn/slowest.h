#ifndef SR_SLOWEST_H
#define SR_SLOWEST_H
/*
 * slowest: who pays when there is no room for temporary files (spools.h). So that clients who are slow on purpose do not keep it
 * from others, the slowest client pays: its connection ends.
 *
 * Slow is who would need longest for what is left, at the rate of the whole exchange so far. A client pays nothing in the
 * first second.
 */
#include "engine.h"

typedef enum sr_slowest_paid {
    SR_SLOWEST_NOBODY, /* all have come within the last second */
    SR_SLOWEST_OTHER,  /* a connection was closed, or refused with 507 */
    SR_SLOWEST_SELF,   /* `self` is the slowest, and the caller ends it */
} sr_slowest_paid;

/*
 * Who is to pay for `self`: OTHER will be ended by sr_slowest_collect. Closes nothing, so it may be called in the middle of a connection.
 */
sr_slowest_paid sr_slowest_pays(sr_engine *e, const sr_conn *self);

/* Ends those that are to pay, until there is room for these bytes; false: there is none. Call between connections: closes any of them. */
bool sr_slowest_make_room(sr_engine *e, uint64_t bytes);

/* The same, for whoever has asked since the last time. */
void sr_slowest_collect(sr_engine *e);

/* Ends the slowest, likewise. */
sr_slowest_paid sr_slowest_evict(sr_engine *e);

#endif
