#ifndef SR_LISTENER_H
#define SR_LISTENER_H
/*
 * listener: the sockets that connections come from, and whether they are watched. Failure: a socket that cannot be watched is
 * tried again after 100 ms.
 */
#include "engine.h"

/* Adds a listening, non-blocking socket, which stays the caller's. Returns 0 or errno (ENOSPC: too many). */
int sr_listeners_add(sr_engine *e, int fd, bool is_unix);

void sr_listeners_watch(sr_engine *e, bool on); /* puts the listeners into the epoll set, or takes them out */
void sr_listeners_pause(sr_engine *e);          /* leaves them alone for 100 ms: accept can't succeed now */

#endif
