#ifndef SR_EXPIRE_H
#define SR_EXPIRE_H
/*
 * expire: what happens when a time limit of a connection is over. Called in each step of the loop.
 */
#include "engine.h"

void sr_expire_due(sr_engine *e); /* of sr_expire */

/*
 * Ends limits that are over, some of each kind: the next step goes on with the rest. May close and free
 * connections.
 */
static inline void sr_expire(sr_engine *e)
{
    if (sr_deadlines_due(&e->deadlines, e->now))
        sr_expire_due(e);
    e->looked_at = e->now;
}

#endif
