#ifndef SR_EXPIRE_H
#define SR_EXPIRE_H
/*
 * expire: what happens when a time limit of a connection is over. Called in each step of the loop.
 */
#include "engine.h"

/*
 * Ends limits that are over, some of each kind: the next step goes on with the rest. May close and free
 * connections.
 */
void sr_expire(sr_engine *e);

#endif
