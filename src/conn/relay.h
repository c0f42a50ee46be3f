#ifndef SR_RELAY_H
#define SR_RELAY_H
/*
 * relay: moves the bytes of psgix.io between the client and the pair of sockets of a pump (pump.h).
 *
 * Neither side is read further than the other takes: at most SR_PUMP_BYTES wait in each direction, those for
 * the client in its output (conn->out), so that they and a response keep their order. The end of one side is
 * passed on (close_notify, shutdown); when both have ended, or the application has closed its end, the
 * connection is closed. While a worker has the request, a closed end means nothing yet: the handle is closed
 * with %env, and the response of the application may come after that.
 *
 * An application may write to the handle and answer in the ordinary way as well. What it has written goes out
 * before what it says in the response afterwards, as if both wrote to the socket of the client.
 *
 * Closing: all functions but sr_relay_drain and sr_relay_busy may close and free the connection.
 */
#include "engine.h"

/* An event of either side. */
void sr_relay_step(sr_engine *e, sr_conn *c);

/*
 * Sends or keeps all that the application has written: what it says by other means, such as a response, comes
 * after that. Closes nothing; conn->gone says that the client cannot be reached.
 */
void sr_relay_drain(sr_engine *e, sr_conn *c);

/*
 * The application keeps the socket (psgix.io) and will not answer: its request is over, and the edge drops a
 * plain connection.
 */
void sr_relay_detach(sr_engine *e, sr_exchange *x);

/* Whether bytes of the application have not been sent to the client. */
bool sr_relay_busy(const sr_conn *c);

#endif
