#include "spools.h"

#include "engine.h"

#include <errno.h>

#define FULL_NS SR_SECOND /* after a write that has failed, until the next try */

enum { ABOVE = 1024 * 1024 }; /* bytes that bodies may be above the limit until the turn of the loop ends */

uint64_t sr_spools_taken;
static uint64_t frees; /* how often some were freed */

void sr_spools_took(uint64_t bytes)
{
    sr_spools_taken += bytes;
}

void sr_spools_gave(uint64_t bytes)
{
    sr_spools_taken -= bytes;
    frees += bytes > 0;
}

/* Of other edges, those that retire included. */
static uint64_t elsewhere(const sr_engine *e)
{
    uint64_t sum = 0;
    const sr_scoreboard *s = e->scoreboard;
    for (uint32_t i = 0; s && i < s->edges; i++)
        if (&s->rows[s->slots + i] != e->row)
            sum += atomic_load_explicit(&s->rows[s->slots + i].spooled, memory_order_relaxed);
    return sum;
}

static bool allowed(const sr_engine *e, uint64_t more, uint64_t above)
{
    uint64_t most = e->config.max_temp + above;
    return !e->config.max_temp ||
           (sr_spools_taken + more <= most && sr_spools_taken + more + elsewhere(e) <= most);
}

bool sr_spools_allowed(const sr_engine *e, uint64_t more)
{
    return allowed(e, more, 0);
}

bool sr_spools_allowed_above(const sr_engine *e, uint64_t more)
{
    return allowed(e, more, ABOVE);
}

bool sr_spools_room(const sr_engine *e, uint64_t more)
{
    bool full = e->spools.full_until > e->now && e->spools.full_frees == frees;
    return !full && sr_spools_allowed(e, more);
}

void sr_spools_failed(sr_engine *e, int err)
{
    if (err != ENOSPC && err != EDQUOT && err != EFBIG)
        return;
    e->spools.full_until = e->now + FULL_NS;
    e->spools.full_frees = frees;
}
