#ifndef SR_RECENT_H
#define SR_RECENT_H
/*
 * recent: what was published of late, so that a subscriber which moves to another edge gets each publication
 * exactly once.
 *
 * A publisher gives an item to all edges, with the same number. Any of them may come to know it first, while
 * connections are on their way from the old edge to the new one. So the old edge tells, among the
 * connections, which publications it has given to those that follow. The new edge keeps its own publications
 * for a while:
 *
 *   a connection arrives       it gets those that the old edge has not told so far a publication arrives
 *   who arrived before the old edge told it gets it; who arrived after that has it already
 *
 * Owner: sr_live. Kept for SR_RECENT_SECONDS after the edge has begun, and while connections come. Without
 * memory, or beyond SR_RECENT_BYTES, the oldest are forgotten, and a connection that arrives then may lack
 * one.
 */
#include "live.h"

enum {
    SR_RECENT_SECONDS = 60,
    SR_RECENT_BYTES = 16 * 1024 * 1024,
    /*
     * that the old edge tells at most: as many as a step may bring, and what came while a publication was on
     * its way
     */
    SR_RECENT_NUMBERS = 32768,
};

/* --- the new edge --- */

/* Connections come, or no more will. */
void sr_recent_keep(sr_live *live, bool comes);

/* The old edge has given this publication to the connections that follow. */
void sr_recent_told(sr_live *live, uint64_t number);

/* When that was, for a publication: how many connections had arrived before; UINT32_MAX: it was not told. */
uint32_t sr_recent_told_at(const sr_live *live, uint64_t number);

/* `s` arrives, with its subscriptions: gives it what it lacks. It may end meanwhile: false. */
bool sr_recent_arrive(sr_live *live, sr_subscriber *s);

/* --- both --- */

/* A publication is given to subscribers. */
void sr_recent_add(sr_live *live, uint64_t number, sr_bytes packed);

/* --- the old edge --- */

/* The next of the numbers that the other edge was not told. False: it knows all. */
bool sr_recent_untold(sr_live *live, uint64_t *number);
void sr_recent_again(sr_live *live, uint32_t n); /* the last `n` of them could not be told */

int sr_recent_new(sr_live *live); /* 0 or ENOMEM */
void sr_recent_free(sr_live *live);
void sr_recent_expire(sr_live *live); /* in each step */

#endif
