#ifndef SR_STOP_H
#define SR_STOP_H
/*
 * stop: how the edge ends.
 *
 * Gracefully: no more connections are accepted, and each connection is closed after a response, or once it
 * was idle for a second; after --graceful-timeout what is left is cut. Fast: requests that workers have get
 * one second, those that wait get 503, and everything else is closed at once. A worker that is too late is
 * killed by its generation half a second earlier, so that its client gets 502.
 *
 * Closing: step and end may close and free connections.
 */
#include "edge.h"

/*
 * Begins. When it has begun before, or with `fast`, it is fast from now on. The end of the supervisor counts
 * as graceful.
 */
void sr_stop_begin(sr_edge *ed, bool fast);

/*
 * The owner of an edge for --workers 0 has ended, so nobody can answer: a fast stop that closes the listening
 * sockets at once.
 */
void sr_stop_owner_ended(sr_edge *ed);

/* Whether nothing is left: no connection, and no application that is to be told of the end of a WebSocket. */
bool sr_stop_done(const sr_edge *ed);

/* In each step of the loop while the edge ends. True: nothing is left, or the time is over. */
bool sr_stop_step(sr_edge *ed);

/*
 * After the last step: refuses with 503 what still waits, and lets the workers end unless another edge needs
 * them.
 */
void sr_stop_end(sr_edge *ed);

#endif
