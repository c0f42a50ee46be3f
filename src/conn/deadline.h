#ifndef SR_DEADLINE_H
#define SR_DEADLINE_H
/*
 * deadline: time limits of connections. There is one list for each kind of limit. All limits of a kind are
 * equally long, so a list is in order of time by appending to it, and the next one that is due is the head of
 * a list. A connection has at most one.
 *
 * Called by: all files of this folder, and the edge. Failure: none.
 */
#include "engine.h"

void sr_deadlines_init(sr_engine *e); /* takes the lengths from e->config */

/* Starts a limit of this kind at e->now. Replaces the one that the connection had. */
void sr_deadline_set(sr_engine *e, sr_conn *c, sr_deadline_kind kind);

/*
 * The same for a limit that began earlier and ends at `deadline`, monotonic ns; at the latest as
 * sr_deadline_set.
 */
void sr_deadline_keep(sr_engine *e, sr_conn *c, sr_deadline_kind kind, int64_t deadline);

void sr_deadline_clear(sr_engine *e, sr_conn *c);

/* Shortens the limits of this kind to `limit` ns, those that run already included. */
void sr_deadline_shorten(sr_engine *e, sr_deadline_kind kind, int64_t limit);

/* When the first limit of this kind ends, monotonic ns; 0: there is none. */
int64_t sr_deadline_first(const sr_engine *e, sr_deadline_kind kind);

/* ms until the next limit ends, for epoll_wait; -1: there is none. */
int sr_deadlines_timeout(sr_engine *e);

/*
 * The next kind in *kinds that has a deadline. -1: none. The loops over kinds run at every wait, and most lists
 * are empty, so kinds with an empty list are removed from *kinds and skipped from then on.
 */
static inline int sr_deadline_kind_next(sr_engine *e, uint32_t *kinds)
{
    while (*kinds) {
        int kind = __builtin_ctz(*kinds);
        *kinds &= *kinds - 1;
        if (!sr_link_alone(&e->deadlines[kind]))
            return kind;
        e->running &= ~(1U << kind);
    }
    return -1;
}

#endif
