#ifndef SR_PUBLISH_H
#define SR_PUBLISH_H
/*
 * publish: takes the items that workers and the supervisor hand in, checks them, and hands them to the
 * subscribers.
 *
 * An item waits until the rings of all workers have been looked through once more, and is published in the
 * order of its number, which is the time at which it was made: what a publisher knew of another one's item
 * comes behind that, though it came by another ring.
 *
 * Trust: none in workers: an item that is malformed or too large breaks its worker. Of the supervisor: its
 * own program has packed it, but for what a child of the application may have sent; one that is malformed is
 * counted and dropped.
 * Failure: without memory the item is counted and dropped.
 */
#include "edge.h"

/*
 * A record SR_REPLY_PUBLISH. The part of an item is kept with the worker until the rest comes. False: it is
 * none.
 */
bool sr_publish_record(sr_edge *ed, sr_edge_worker *m, const sr_record *rec, sr_bytes payload);

/* An item in a file, of the supervisor; the descriptor stays the caller's. */
void sr_publish_file(sr_edge *ed, int fd);

/* Whether items wait; *last: the highest of their numbers. */
bool sr_publish_waits(const sr_edge *ed, uint64_t *last);
/* Publishes those with a number up to that. */
void sr_publish_until(sr_edge *ed, uint64_t last);
void sr_publish_end(sr_edge *ed); /* nobody gets what waits */

/* The worker is gone: what it has begun to publish is dropped. */
void sr_publish_forget(sr_edge_worker *m);

#endif
