#include "channel.h"
#include "clients.h"
#include "fanout.h"
#include "timer.h"

#include <stdlib.h>
#include <sys/random.h>

sr_live *sr_live_new(sr_engine *e)
{
    sr_live *live = calloc(1, sizeof *live);
    if (!live)
        return NULL;
    live->engine = e;
    sr_link_init(&live->all);
    sr_link_init(&live->busy);
    sr_link_init(&live->remembered);
    for (unsigned i = 0; i < SR_LIVE_WHEEL; i++)
        sr_link_init(&live->wheel.slot[i]);
    if (getrandom(&live->seed, sizeof live->seed, GRND_NONBLOCK) != (ssize_t)sizeof live->seed)
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
    free(live);
}

void sr_live_step(sr_live *live)
{
    sr_fanout_step(live);
    sr_timers_step(live);
    sr_channels_expire(live);
}

int sr_live_timeout(const sr_live *live)
{
    if (!sr_link_alone(&live->busy) || sr_timers_wait(live))
        return 0;
    if (!live->wheel.n && !live->n_remembered)
        return -1;
    return (int)((SR_SECOND - live->engine->now % SR_SECOND) / SR_MILLISECOND) + 1;
}

void sr_live_drain(sr_live *live)
{
    sr_link now;
    sr_link_init(&now);
    live->draining = true;
    while (!sr_link_alone(&live->all))
        sr_link_append(&now, live->all.next);
    while (!sr_link_alone(&now)) {
        sr_subscriber *s = SR_LIST_ENTRY(now.next, sr_subscriber, all);
        sr_link_append(&live->all, &s->all);
        s->ops->leave(live, s);
    }
}

void sr_live_channels(const sr_live *live, bool (*each)(void *with, const sr_channel *c), void *with)
{
    for (size_t i = 0; i < live->n_chains; i++)
        for (const sr_channel *c = live->chains[i]; c; c = c->next)
            if (c->n && !each(with, c))
                return;
}
