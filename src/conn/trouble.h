#ifndef SR_TROUBLE_H
#define SR_TROUBLE_H
/*
 * trouble: events that the operator must hear of and that only an edge sees, such as refused requests. They
 * are counted in the row of the edge. One message wakes the supervisor, which writes them to the log with
 * their numbers (lib/Sirius/Process/Alerts.pm); until it has looked, further events cost a count each, so
 * that a flood of them does not flood the supervisor.
 *
 * Failure: without a scoreboard or a pipe to the supervisor nothing is said.
 */
#include "engine.h"

void sr_trouble_count(sr_engine *e, sr_trouble what, uint64_t by, int err); /* err: errno, or 0 */

/*
 * A call for the connection of a client has failed with this errno, and it will be closed: counts it if
 * memory was short.
 */
void sr_trouble_lost(sr_engine *e, int err);

/* A request is refused. What only its caller knows more of, such as the errno, is counted there. */
void sr_trouble_refused(sr_engine *e, const sr_exchange *x, sr_refusal why);

/*
 * The TLS handshake of this connection has failed, and the caller closes it: counts that, and tells the owner
 * of the engine, with `words` as of sr_transport_ops.failure. The supervisor hears nothing of it here.
 */
void sr_trouble_handshake(sr_engine *e, const sr_conn *c, sr_failure why, const char *words);

/*
 * The client of this connection, which speaks HTTP/2, does that too often: counts it, and tells the owner of
 * the engine.
 */
void sr_trouble_flood(sr_engine *e, const sr_conn *c, sr_flood what, bool end);

/* Wakes the supervisor, so that it looks at the counts. */
void sr_trouble_ring(sr_engine *e);

#endif
