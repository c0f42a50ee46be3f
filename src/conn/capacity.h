#ifndef SR_CAPACITY_H
#define SR_CAPACITY_H
/*
 * capacity: the bound on connections, of this edge and of all edges together. When it is reached, or no
 * descriptor is left, the oldest idle connection is closed for the new one. That may be a connection of
 * another edge, which is then asked to close it.
 *
 * Some descriptors are kept free of connections: those that pass to workers, temporary files, and workers
 * that connect need them. When the table of this process is nearly full, idle connections are closed, or
 * nobody is accepted for a while.
 *
 * Closing: all functions here but init and awaits may close and free idle connections.
 */
#include "engine.h"

void sr_capacity_init(sr_engine *e);

/* Makes room for a connection that was just accepted. False: all are in use, and it must be refused. */
bool sr_capacity_make(sr_engine *e);

/*
 * With sheds_unfinished: whether every connection has a complete request that is being answered. Then no more
 * are accepted until one is over: a new connection waits for that in the backlog of the listener, instead of
 * being refused.
 */
bool sr_capacity_awaits(const sr_engine *e);

/* False: no connection is idle. */
bool sr_capacity_close_oldest(sr_engine *e);

void sr_capacity_taken(sr_engine *e, int fd); /* the connection that was entered last has this descriptor */
void sr_capacity_recount(sr_engine *e);       /* counts the descriptors in use, before accepting again */

/* In each step of the loop: ends the pause of the listeners when it is over. */
void sr_capacity_resume(sr_engine *e);

#endif
