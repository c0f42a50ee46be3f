#ifndef SR_PRESENCE_H
#define SR_PRESENCE_H
/* presence: whether the client of a request is there still, as far as the kernel knows. */
#include "edge.h"

/*
 * Asks the kernel for the client of a request: 0: it is there; 1: it has shut its side down; -1: it is gone.
 */
int sr_presence(const sr_conn *c);

/*
 * Whether the client is gone for certain, whatever it has left to be read: nothing that is sent reaches it.
 * Of one over TCP that is known only after something was sent. In any state of the connection.
 */
bool sr_presence_lost(const sr_conn *c);

/*
 * The application writes nothing for now: has the client gone? Then the connection is closed, and freed. If
 * it has ended its side, the kernel asks it whether it still reads.
 */
void sr_presence_probe(sr_edge *ed, sr_conn *c);

#endif
