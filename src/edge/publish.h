#ifndef SR_PUBLISH_H
#define SR_PUBLISH_H
/*
 * publish: takes the items that workers and the supervisor hand in, checks them, and hands them to the subscribers.
 *
 * Trust: none in workers: an item that is malformed or too large breaks its worker. Of the supervisor: its own program has packed it, but
 * for what a child of the application may have sent; one that is malformed is counted and dropped.
 * Failure: without memory the item is counted and dropped.
 */
#include "edge.h"

/* A record SR_REPLY_PUBLISH. The part of an item is kept with the worker until the rest comes. False: it is none. */
bool sr_publish_record(sr_edge *ed, sr_edge_worker *m, const sr_record *rec, sr_bytes payload);

/* An item in a file, of the supervisor; the descriptor stays the caller's. */
void sr_publish_file(sr_edge *ed, int fd);

/* The worker is gone: what it has begun to publish is dropped. */
void sr_publish_forget(sr_edge_worker *m);

#endif
