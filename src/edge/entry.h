#ifndef SR_ENTRY_H
#define SR_ENTRY_H
/*
 * entry: the request in a slot, from what ends it to who runs it. For all files of the edge above it.
 *
 * An entry outlives its connection when the client goes first: then the edge goes on watching its worker, and
 * throws away what that writes.
 */
#include "edge.h"

/* Whether what a worker writes is read. */
static inline bool sr_entry_hears(const sr_edge_worker *m)
{
    return m->line.fd >= 0 && !m->broken;
}

/*
 * Ends an entry without a word to its client: frees what it holds, and makes its slot free for another
 * request.
 */
void sr_entry_forget(sr_edge *ed, uint32_t slot);

/*
 * An exchange with a request in a slot is about to be closed, or answered by the edge itself: separates the
 * two. A request that still waits leaves the queue; otherwise its worker is watched on. Called by conn/
 * through sr_engine.abandoned, which says what is returned.
 */
sr_link *sr_entry_abandon(sr_edge *ed, sr_exchange *x);

/*
 * The row whose worker says in its ring that it has begun with the request of the slot; -1: none. Looks at
 * all rows.
 */
int32_t sr_entry_runs(const sr_edge *ed, uint32_t slot);
/* Puts a request back in front of the queue. False: that is not possible, and the caller ends it. */
bool sr_entry_requeue(sr_edge *ed, uint32_t slot);

/*
 * Since when its time limits run, monotonic ns: since it was complete, or its lane has let it in. Before
 * sr_entry_watch.
 */
int64_t sr_entry_since(const sr_edge *ed, uint32_t slot);

/* Has the worker of an entry without a client looked at when that monotonic time, ns, has come. */
void sr_entry_watch(sr_edge *ed, sr_entry *en, int64_t at);

/* Whether that worker says that it has begun with the request of the slot, and may be believed. */
bool sr_entry_begun(const sr_edge *ed, const sr_edge_worker *m, uint32_t slot);

#endif
