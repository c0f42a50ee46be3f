#include "../base/random.h"
#include "channel.h"
#include "clients.h"
#include "fanout.h"
#include "recent.h"
#include "timer.h"

#include <stdlib.h>

sr_live *sr_live_new(sr_engine *e)
{
    sr_live *live = calloc(1, sizeof *live);
    if (!live)
        return NULL;
    live->engine = e;
    sr_link_init(&live->busy);
    sr_link_init(&live->remembered);
    if (sr_recent_new(live)) {
        free(live);
        return NULL;
    }
    for (unsigned i = 0; i < SR_LIVE_WHEEL; i++)
        sr_link_init(&live->wheel.slot[i]);
    if (!sr_random_now(&live->seed, sizeof live->seed))
        live->seed = e->nonce;
    return live;
}

void sr_live_free(sr_live *live)
{
    if (!live)
        return;
    sr_fanout_free(live);
    sr_channels_free(live);
    sr_clients_free(live->clients);
    sr_recent_free(live);
    free(live);
}

void sr_live_step(sr_live *live)
{
    sr_fanout_step(live);
    sr_timers_step(live);
    sr_channels_expire(live);
    sr_recent_expire(live);
}

int sr_live_timeout(const sr_live *live)
{
    if (!sr_link_alone(&live->busy) || sr_timers_wait(live))
        return 0;
    if (!live->wheel.n && !live->n_remembered)
        return -1;
    return (int)((SR_SECOND - live->engine->now % SR_SECOND) / SR_MILLISECOND) + 1;
}

bool sr_live_stays(const sr_live *live, const sr_subscriber *s)
{
    bool moves = s->ops->pack && live->yields & 1U << s->ops->kind;
    return !live->draining && (!live->retiring || (moves && sr_live_moves(s->exchange->conn)));
}

/* All but those that can move. Each may end its connection, but no other. */
static void leave(sr_live *live)
{
    for (sr_link *l = live->engine->all.next, *next; l != &live->engine->all; l = next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        const bool streams = c->state == SR_CONN_STREAMS; /* otherwise it may end with what is held */
        next = l->next;
        for (sr_exchange *x = c->exchange, *older; x; x = older) {
            sr_subscriber *s = x->held;
            const uint64_t ended = live->ended;
            older = x->older;
            if (s && s->exchange == x && !sr_live_stays(live, s))
                s->ops->leave(live, s);
            if (live->ended != ended && !streams)
                break;
        }
    }
}

void sr_live_drain(sr_live *live)
{
    live->draining = true;
    leave(live);
}

void sr_live_retire(sr_live *live)
{
    live->retiring = true;
    live->yields = UINT32_MAX;
    leave(live);
}

void sr_live_yield(sr_live *live, uint32_t kinds)
{
    live->yields = kinds;
    leave(live);
}

void sr_live_channels(const sr_live *live, bool (*each)(void *with, const sr_channel *c), void *with)
{
    for (size_t i = 0; i < live->n_chains; i++)
        for (const sr_channel *c = live->chains[i]; c; c = c->next)
            if (c->n && !each(with, c))
                return;
}
