#ifndef SR_ACCEPT_H
#define SR_ACCEPT_H
/*
 * accept: new connections. Makes room for them, and reads what has come with them.
 *
 * Called by: the loop of the edge. May close and free connections, as sr_capacity_make says.
 * Failure: without a descriptor or memory, nobody is accepted for a while; without room the client gets 503.
 */
#include "intake.h"
#include "listener.h"

sr_intake sr_accept(struct sr_engine *e, sr_listener *l, sr_task *task); /* a listener has a connection */

#endif
