#ifndef SR_SLOWEST_H
#define SR_SLOWEST_H
/*
 * slowest: who pays when there is no room for temporary files (spools.h). So that clients who are slow on
 * purpose do not keep it from others, the slowest client pays: its connection ends.
 *
 * The slowest client is the one that would need longest, at its recent pace (pace.h), to move as many bytes
 * as it holds on the disk. What is left does not count, as a client may stop just before its end. Of those
 * that have stalled, and of those that need no more than 15 s, the one that holds most is the slowest. So it
 * helps nobody to share what it holds among many connections: all of them together have to move it as fast as
 * one would.
 *
 * A client pays nothing in the first second, unless it wants more itself.
 */
#include "engine.h"

/*
 * So many bytes of a request body of `self` have come. Whether they may go to its file, as far as they do. If
 * there is no room, the slowest client pays, which may be this one. Another one ends when this turn of the
 * loop does: its end uses the scratch memory, in which the bytes at hand lie. Until then files may grow a
 * little above the limit.
 */
bool sr_slowest_has_room(sr_engine *e, const sr_conn *self, sr_body *body, size_t len);

/*
 * Ends those that are to pay, until there is room for these bytes; false: there is none. Call between
 * connections: closes any of them.
 */
bool sr_slowest_make_room(sr_engine *e, uint64_t bytes);

/* The same, for all that have asked since the last time. */
void sr_slowest_collect(sr_engine *e);

/*
 * Ends the slowest, likewise, also one that holds nothing but memory. False: all have come within the last
 * second.
 */
bool sr_slowest_evict(sr_engine *e);

#endif
