#ifndef SIRIUS_ROW_H
#define SIRIUS_ROW_H
/*
 * row: the row of this worker in the scoreboard. Only this process writes to it (share/scoreboard.h).
 *
 * Owner: the request loop, which holds the object that the memory belongs to. Thread: that of perl; a handler
 * of a signal may tell the place.
 */
#include "perlapi.h"

#include "share/scoreboard.h"

typedef struct sirius_row {
    sr_row *of;           /* never NULL: without a scoreboard it is `none` */
    sr_scoreboard *board; /* NULL: there is none */
    SV *object;           /* the Sirius::Scoreboard of `board`. Counted */
    sr_row none;
} sirius_row;

/* `scoreboard` is a Sirius::Scoreboard, or anything else, or NULL: then there is none. */
void sirius_row_open(pTHX_ sirius_row *r, SV *scoreboard, uint32_t slot);
void sirius_row_close(pTHX_ sirius_row *r);

/* What the worker does from `at` on, monotonic ns. */
static inline void sirius_row_state(const sirius_row *r, sr_worker_state now, int64_t at)
{
    atomic_store_explicit(&r->of->since, at, memory_order_relaxed);
    atomic_store_explicit(&r->of->state, now, memory_order_relaxed);
}

#endif
