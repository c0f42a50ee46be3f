#include "channel.h"

#include "../base/fnv.h"

#include <stdlib.h>

enum { CHAINS_MIN = 64 };

/* FNV-1a from a random start, mixed once more: clients do not choose names, applications may let them. */
static uint64_t hash(const sr_live *live, sr_bytes name)
{
    uint64_t h = live->seed ^ SR_FNV_START;
    for (size_t i = 0; i < name.len; i++) {
        h = sr_fnv(h, name.at + i, 1);
        h ^= h >> 29;
    }
    return h ^ h >> 32;
}

static sr_channel **chain(const sr_live *live, uint64_t h)
{
    return &live->chains[h & (live->n_chains - 1)];
}

sr_channel *sr_channel_find(const sr_live *live, sr_bytes name)
{
    if (!live->n_chains)
        return NULL;
    uint64_t h = hash(live, name);
    for (sr_channel *c = *chain(live, h); c; c = c->next)
        if (c->hash == h && sr_bytes_equal(sr_channel_name(c), name))
            return c;
    return NULL;
}

/* As many chains as channels, at least. Without memory chains grow longer. */
static bool room(sr_live *live)
{
    size_t n = live->n_chains ? live->n_chains * 2 : CHAINS_MIN;
    if (live->n_channels < live->n_chains)
        return true;
    sr_channel **chains = calloc(n, sizeof(sr_channel *)), **old = live->chains;
    size_t n_old = live->n_chains;
    if (!chains)
        return n_old;
    live->chains = chains;
    live->n_chains = n;
    for (size_t i = 0; i < n_old; i++)
        for (sr_channel *c = old[i], *next; c; c = next) {
            next = c->next;
            c->next = *chain(live, c->hash);
            *chain(live, c->hash) = c;
        }
    free(old);
    return true;
}

sr_channel *sr_channel_make(sr_live *live, sr_bytes name)
{
    sr_channel *c = sr_channel_find(live, name);
    if (c || !room(live) || !(c = calloc(1, sizeof *c + name.len)))
        return c;
    c->hash = hash(live, name);
    c->name_len = (uint8_t)name.len;
    memcpy(c->name, name.at, name.len);
    sr_link_init(&c->subscriptions);
    sr_link_init(&c->publications);
    sr_link_init(&c->link);
    c->next = *chain(live, c->hash);
    *chain(live, c->hash) = c;
    live->n_channels++;
    return c;
}

static void forget(sr_live *live, sr_channel *c)
{
    sr_channel **at = chain(live, c->hash);
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    live->n_channels--;
    sr_link_remove(&c->link);
    free(c->last);
    free(c);
}

static void forget_first(sr_live *live)
{
    live->n_remembered--;
    forget(live, SR_LIST_ENTRY(live->remembered.next, sr_channel, link));
}

void sr_channel_used(sr_live *live, sr_channel *c)
{
    if (!c->forget)
        return;
    c->forget = 0;
    sr_link_remove(&c->link);
    live->n_remembered--;
}

void sr_channel_unused(sr_live *live, sr_channel *c)
{
    if (c->n || c->forget || !sr_link_alone(&c->publications))
        return;
    if (!c->last) {
        forget(live, c);
        return;
    }
    if (live->n_remembered == SR_LIVE_REMEMBERED_MAX)
        forget_first(live);
    c->forget = sr_live_second(live) + SR_LIVE_REMEMBERS;
    live->n_remembered++;
    sr_link_append(&live->remembered, &c->link);
}

uint32_t sr_channel_mark(const sr_live *live, sr_bytes id)
{
    uint32_t mark = (uint32_t)(hash(live, id) >> 34);
    return mark ? mark : 1;
}

void sr_channel_remember(sr_channel *c, sr_bytes id)
{
    char *copy = id.len ? malloc(id.len) : NULL;
    if (copy)
        memcpy(copy, id.at, id.len);
    free(c->last); /* without memory it is as if there were none: nobody is told of a gap that is not there */
    c->last = copy;
    c->last_len = copy ? (uint8_t)id.len : 0;
}

void sr_channels_expire(sr_live *live)
{
    while (live->n_remembered &&
           SR_LIST_ENTRY(live->remembered.next, sr_channel, link)->forget <= sr_live_second(live))
        forget_first(live);
}

void sr_channels_free(sr_live *live)
{
    for (size_t i = 0; i < live->n_chains; i++)
        while (live->chains[i])
            forget(live, live->chains[i]);
    free(live->chains);
}
