#ifndef SIRIUS_ALONE_H
#define SIRIUS_ALONE_H
/*
 * alone: the edge that this process has started itself, as there is no supervisor (--workers 0). No other
 * process starts another one when it ends, or reads its counts.
 *
 * Owner: the request loop; the descriptor is that of Sirius::Edge::Beside. Thread: that of perl.
 */
#include "perlapi.h"

#include "share/scoreboard.h"

typedef struct sirius_alone {
    int edge;          /* its pidfd; -1: there is a supervisor */
    int64_t looked_at; /* monotonic ns, for trouble of that edge */
} sirius_alone;

/*
 * How often a worker has to look, in ns, since a futex does not report the end of a process. 0: it need not.
 */
int64_t sirius_alone_look_ns(const sirius_alone *a);

bool sirius_alone_ended(const sirius_alone *a); /* the edge has ended */

bool sirius_alone_look(sirius_alone *a, const sr_scoreboard *board, int64_t now); /* private */

/* The edge has counted something that the operator must hear of. Looks only now and then. */
static inline bool sirius_alone_troubled(sirius_alone *a, const sr_scoreboard *board, int64_t now)
{
    return a->edge >= 0 && sirius_alone_look(a, board, now);
}

#endif
