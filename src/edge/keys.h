#ifndef SR_KEYS_H
#define SR_KEYS_H
/*
 * keys: how certificates and keys come to an edge: as sealed files in memory, on a line from the keeper
 * (keeper.h), whose other end the supervisor has passed to it. An edge without a supervisor has read them
 * from files, before it has given up its rights.
 *
 * A set is loaded as a whole or not at all, and connections that exist go on with what they have.
 */
#include "edge.h"

/*
 * In sr_edge_new: waits for the first set, if there is a listener with TLS. Returns 0 or errno; ETIMEDOUT: no
 * set has come within ten seconds.
 */
int sr_keys_open(sr_edge *ed, const sr_setup *s);

void sr_keys_line(sr_edge *ed, int line); /* another keeper sends by this line from now on; takes it over */
void sr_keys_receive(sr_edge *ed);        /* an event of the line */

/* Reads a set from a file, which stays the caller's, to a buffer that the caller wipes. False: it is none. */
bool sr_keys_read(int file, uint32_t bytes, sr_buffer *to);

#endif
