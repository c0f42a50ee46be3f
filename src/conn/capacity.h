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
 * Closing: all functions here but init and awaits may close and free connections: idle ones, and with
 * sheds_unfinished those whose request is not complete.
 */
#include <stdbool.h>

struct sr_engine;

typedef struct sr_capacity { /* about descriptors of this process */
    int spare;               /* how many are kept free of connections */
    int scarce;              /* those with this number or above are the last ones */
    int besides;             /* how many are not connections, as counted last */
    int high;                /* connections whose descriptor is scarce */
    bool made_room; /* an idle connection was closed for lack of a descriptor; accept is tried again */
} sr_capacity;

void sr_capacity_init(struct sr_engine *e);

/* Makes room for a connection that was just accepted. False: all are in use, and it must be refused. */
bool sr_capacity_make(struct sr_engine *e);

/*
 * With sheds_unfinished: whether every connection has a complete request that is being answered. Then no more
 * are accepted until one is over: a new connection waits for that in the backlog of the listener, instead of
 * being refused.
 */
bool sr_capacity_awaits(const struct sr_engine *e);

/* False: no connection is idle. */
bool sr_capacity_close_oldest(struct sr_engine *e);

/* The connection that was entered last has this descriptor. */
void sr_capacity_taken(struct sr_engine *e, int fd);

/* In each step of the loop: ends the pause of the listeners when it is over. */
void sr_capacity_resume(struct sr_engine *e);

#endif
