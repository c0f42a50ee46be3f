#ifndef SR_LIFETIME_H
#define SR_LIFETIME_H
/*
 * lifetime: the beginning of an engine, how it is drained, and its end.
 *
 * Called by: the edge. Closing: all functions may close and free connections.
 */
#include "engine.h"

/*
 * Makes an engine, and its scratch buffer of 128 KiB. `lifeline` is -1 or a pipe.
 * Hooks, scoreboard and row are set afterwards. Returns 0 or errno.
 */
int sr_engine_new(sr_engine **out, const sr_config *config, int lifeline);
void sr_engine_free(sr_engine *e); /* closes all connections; NULL is fine */

/*
 * In each step of the loop while the edge ends: accepts nobody, and shortens the limits of idle connections
 * to a second. True: no connection is left but such as an application has taken over (psgix.io), and what it
 * has written is sent, as far as that was possible within a second.
 */
bool sr_engine_drain_step(sr_engine *e);

/*
 * No exchange begins any more on connections in SR_CONN_STREAMS: the server stops, or another edge takes
 * over.
 */
void sr_engine_drain_streams(sr_engine *e);

#endif
