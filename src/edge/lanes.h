#ifndef SR_LANES_H
#define SR_LANES_H
/*
 * lanes: holds the requests of --lane back while their lane is full. A request of a lane needs a place of it
 * to get into the queue, and has that until its worker is done, which may be long after the response: for
 * psgix.cleanup, for code behind a streamed response, for destructors. The worker says so in its ring
 * (share/ring.h). Who has to wait for a place stays in its slot, in a list of its lane: it has no number yet,
 * so no worker and no other file of the edge takes it for one that waits for a worker.
 *
 * The places are those of all edges together. Each edge publishes how many it has, and when the first that
 * waits was complete (share/lane.h); who finds a place free lets the oldest of all in, or rings the bell of
 * the edge that has it.
 *
 * Owner: the edge. NULL without --lane: nothing here is called then.
 * Failure: an edge that was killed has no places, although its workers may still run its requests.
 */
#include "edge.h"

int sr_lanes_open(sr_edge *ed, const sr_lanerules *rules); /* 0 or ENOMEM. After others_open */
void sr_lanes_close(sr_edge *ed);                          /* also when open has failed or was not called */

/* The lane of a request, by its number + 1; 0: it has none. */
uint8_t sr_lanes_find(const sr_edge *ed, const sr_task *task);

/* What a request of this lane that is complete now has to expect. */
typedef enum sr_lane_state {
    SR_LANE_FREE, /* a place in the lane */
    SR_LANE_BUSY, /* to wait */
    SR_LANE_FULL, /* 503 */
} sr_lane_state;

sr_lane_state sr_lanes_state(const sr_edge *ed, uint8_t lane);
void sr_lanes_refused(sr_edge *ed, uint8_t lane); /* counts that, for FULL */

/*
 * The slot is filled, its entry is complete and has its lane, but no number: puts the request into the queue,
 * now or later.
 */
void sr_lanes_hold(sr_edge *ed, uint32_t slot);

/*
 * The request of an entry with a lane is over here: its place is free, or it waits for one no longer. The
 * worker that has run it (NULL: none has) keeps the place until it is done or has ended.
 */
void sr_lanes_leave(sr_edge *ed, sr_entry *en, sr_edge_worker *m);

/* For a worker that keeps a place, when it was heard of: takes the place away from it if it is done. */
void sr_lanes_heard(sr_edge *ed, sr_edge_worker *m);

/* Likewise of a worker that has ended. */
void sr_lanes_ended(sr_edge *ed, sr_edge_worker *m);

/*
 * Now and then, and when another edge asks for it: looks for places, and refuses who has waited too long.
 * Closing.
 */
void sr_lanes_look(sr_edge *ed);

bool sr_lanes_wait(const sr_edge *ed); /* whether some request waits for a place */

/* Whether the request waits for a place in its lane. */
static inline bool sr_lanes_holds(const sr_entry *en)
{
    return en->waits_for == SR_ENTRY_LANE;
}

#endif
