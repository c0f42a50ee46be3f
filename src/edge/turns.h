#ifndef SR_TURNS_H
#define SR_TURNS_H
/*
 * turns: holds requests of connections with several streams back, so that the hundred streams of one client
 * do not stand before another's first. The queue in shared memory is in the order of time. So a connection
 * has one request there or with a worker, as if it spoke HTTP/1.1, and more only as far as workers would have
 * nothing to do; the others wait in filled slots, in a list of their connection, without a number. The
 * connections that wait take turns.
 *
 * Owner: the edge. A connection with HTTP/1.1 has nothing to do with it.
 * Failure: without memory a request goes into the queue at once.
 */
#include "../conn/deadline.h"
#include "edge.h"

/* Of the connection, with one owner more: the entry. NULL: no memory. */
sr_turn *sr_turns_of(sr_conn *c);

/* Puts the request of a slot into the queue, behind all others. Its entry is complete. */
static inline void sr_turns_put(sr_edge *ed, uint32_t slot)
{
    sr_entry *en = &ed->entries[slot];
    ed->mend.each_ns = 0; /* so that mend.c looks at it soon */
    en->exchange->number = en->number = sr_queue_put(&ed->queue, slot);
    sr_deadline_set_exchange(ed->engine, en->exchange, SR_DEADLINE_LOOK);
}

/* The same for an entry with a turn, now or later. */
void sr_turns_wait(sr_edge *ed, uint32_t slot);

/* The same, whether its connection has several streams or not. */
static inline void sr_turns_enter(sr_edge *ed, uint32_t slot)
{
    if (ed->entries[slot].turn)
        sr_turns_wait(ed, slot);
    else
        sr_turns_put(ed, slot);
}

/* An entry with a turn is over. */
void sr_turns_leave(sr_edge *ed, sr_entry *en);

/*
 * The worker has begun another request at that time, monotonic ns: so long at most did the one before take.
 * When the edge has seen its end may be much later.
 */
void sr_turns_begun(sr_edge *ed, sr_edge_worker *m, int64_t at);

/* In each step of the loop while some wait: gives workers as many as they can use. */
void sr_turns_feed(sr_edge *ed);

static inline bool sr_turns_holds(const sr_entry *en)
{
    return en->waits_for == SR_ENTRY_TURN;
}

#endif
