#ifndef SR_HEIR_H
#define SR_HEIR_H
/*
 * heir: passes connections to the edge that replaces this one, which has other settings or is of another
 * build.
 *
 * The supervisor starts the new edge, the heir, and gives each of the two one end of a pair of sockets when
 * the heir serves. The heir tells how its messages are laid out. From then on the old edge accepts nothing
 * and sends its connections over: those that are idle, and those that have a part of a head, with its bytes.
 * A connection with a request follows after its response. So no client notices.
 *
 * Failure: when the heir dies, or lays out the messages in another way, the rest stays here. Each connection
 * gets the response to its next request, with "Connection: close"; what is left at the end of
 * --graceful-timeout is closed as at a stop.
 */
#include "edge.h"

/* --- the old edge --- */

/* Begins. `heir` is the end of the pair, and is taken over. */
void sr_heir_begin(sr_edge *ed, int heir);
/*
 * In each step of the loop from then on: passes on what can be. True: nothing is left, or --graceful-timeout
 * is over.
 */
bool sr_heir_step(sr_edge *ed);
/* Whether nothing is left. */
bool sr_heir_done(const sr_edge *ed);
/* An event of the pair: the layout of the heir, or its end. */
void sr_heir_heard(sr_edge *ed);
/* Monotonic ns of the next step; INT64_MAX: at an event only. */
int64_t sr_heir_at(const sr_edge *ed);

/* --- the new edge --- */

/* Tells the old edge the layout of what can be passed on; sr_heir_inherit does it. */
void sr_heir_greet(int legacy, uint32_t holds); /* a bit for each sr_held_kind that it takes over */
/* Connections will come by `legacy`, the other end, which is taken over. */
void sr_heir_inherit(sr_edge *ed, int legacy);
/* An event of the pair: some have come, or it is over. */
void sr_heir_receive(sr_edge *ed);

#endif
