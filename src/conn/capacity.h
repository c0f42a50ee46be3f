#ifndef SR_CAPACITY_H
#define SR_CAPACITY_H
/*
 * room: the bound on connections, of this process and of all edges. When it is reached, or no descriptor is left, the oldest idle
 * connection is closed for the new one; it may be another edge's, which is then asked.
 */
#include "engine.h"

void sr_capacity_init(sr_engine *e);
bool sr_capacity_make(sr_engine *e); /* for one just accepted; false: all are in use, it must be refused */
/* With sheds_unfinished: each connection has a complete request that is being answered. No more are to be accepted before one is
 * over: a newcomer waits for that in the backlog of the listener, where it would be refused here. */
bool sr_capacity_awaits(const sr_engine *e);
bool sr_capacity_close_oldest(sr_engine *e); /* false: none is idle */

/*
 * Descriptors that pass to workers, temporary files and workers that say hello need some: newcomers leave them free. Where the
 * table of this process is nearly full, idle connections are closed for that, or nobody is accepted for a while.
 */
void sr_capacity_taken(sr_engine *e, int fd); /* the connection that entered last has got this descriptor */
void sr_capacity_recount(sr_engine *e);       /* before newcomers are let in again */

#endif
