#include "recent.h"

#include "channel.h"

#include <errno.h>
#include <stdlib.h>

enum { WAYS = 8, SETS = 4096 }; /* of what was told, and has not come; the sets by 12 bits of a hash */

typedef struct kept {
    sr_link link; /* in sr_recent.kept, in order */
    uint64_t number;
    uint32_t until;
    size_t bytes;
    char packed[];
} kept;

typedef struct told {
    uint64_t number; /* 0: none */
    uint32_t at;
    uint32_t order; /* the lowest of a set is the oldest */
} told;

struct sr_recent {
    sr_link kept;
    size_t bytes;
    bool comes;       /* connections come */
    uint32_t begun;   /* second at which the edge has begun */
    uint32_t arrived; /* connections so far */
    uint32_t n_told;
    told told[SETS][WAYS];
    uint64_t numbers[SR_RECENT_NUMBERS], added,
        said; /* a ring of the last numbers; how many were added, and said to the new edge */
};

int sr_recent_new(sr_live *live)
{
    if (!(live->recent = calloc(1, sizeof *live->recent)))
        return ENOMEM;
    sr_link_init(&live->recent->kept);
    live->recent->begun = sr_live_second(live);
    return 0;
}

static void drop(struct sr_recent *r, kept *k)
{
    sr_link_remove(&k->link);
    r->bytes -= k->bytes;
    free(k);
}

static void drop_first(struct sr_recent *r)
{
    drop(r, SR_LIST_ENTRY(r->kept.next, kept, link));
}

void sr_recent_free(sr_live *live)
{
    struct sr_recent *r = live->recent;
    if (!r)
        return;
    while (!sr_link_alone(&r->kept))
        drop_first(r);
    free(r);
}

void sr_recent_keep(sr_live *live, bool comes)
{
    live->recent->comes = comes;
}

void sr_recent_expire(sr_live *live)
{
    struct sr_recent *r = live->recent;
    while (!sr_link_alone(&r->kept) && SR_LIST_ENTRY(r->kept.next, kept, link)->until <= sr_live_second(live))
        drop_first(r);
}

/* --- what was told --- */

static told *set_of(struct sr_recent *r, uint64_t number)
{
    return r->told[number * UINT64_C(0x9e3779b97f4a7c15) >> 52];
}

uint32_t sr_recent_told_at(const sr_live *live, uint64_t number)
{
    const told *set = set_of(live->recent, number);
    for (int i = 0; i < WAYS; i++)
        if (set[i].number == number)
            return set[i].at;
    return UINT32_MAX;
}

void sr_recent_add(sr_live *live, uint64_t number, sr_bytes packed)
{
    struct sr_recent *r = live->recent;
    kept *k;
    r->numbers[r->added++ % SR_RECENT_NUMBERS] = number;
    if (sr_recent_told_at(live, number) != UINT32_MAX) /* who arrives had it */
        return;
    if ((!r->comes && sr_live_second(live) - r->begun > SR_RECENT_SECONDS) ||
        !(k = malloc(sizeof *k + packed.len)))
        return;
    *k = (kept){.number = number, .until = sr_live_second(live) + SR_RECENT_SECONDS, .bytes = packed.len};
    memcpy(k->packed, packed.at, packed.len);
    sr_link_init(&k->link);
    sr_link_append(&r->kept, &k->link);
    r->bytes += k->bytes;
    while (r->bytes > SR_RECENT_BYTES)
        drop_first(r);
}

void sr_recent_told(sr_live *live, uint64_t number)
{
    struct sr_recent *r = live->recent;
    for (sr_link *l = r->kept.next; l != &r->kept; l = l->next)
        if (SR_LIST_ENTRY(l, kept, link)->number == number) {
            drop(r, SR_LIST_ENTRY(l, kept, link));
            return;
        }
    told *set = set_of(r, number), *oldest = set;
    for (int i = 1; i < WAYS; i++)
        if (oldest->number && (!set[i].number || (int32_t)(set[i].order - oldest->order) < 0))
            oldest = &set[i];
    *oldest = (told){number, r->arrived, ++r->n_told}; /* it will come */
}

/* --- arrivals --- */

/* It has seen the item then, also if it skips it. */
static bool wants(const sr_live *live, sr_subscriber *s, const sr_item_view *item)
{
    for (sr_subscription *sub = s->subscriptions; sub; sub = sub->next)
        if (sr_bytes_equal(sr_channel_name(sub->channel), item->channel)) {
            sub->expects = item->id.len ? sr_channel_mark(live, item->id) : 0;
            return !sr_subscription_skips(sub, item);
        }
    return false;
}

bool sr_recent_arrive(sr_live *live, sr_subscriber *s)
{
    struct sr_recent *r = live->recent;
    const uint64_t ended = live->ended;
    s->arrival = ++r->arrived;
    for (sr_link *l = r->kept.next; l != &r->kept; l = l->next) {
        const kept *k = SR_LIST_ENTRY(l, kept, link);
        sr_publication *p;
        sr_item_view item;
        if (!sr_item_read(sr_bytes_of(k->packed, k->bytes), &item) || !wants(live, s, &item) ||
            !(p = calloc(1, sizeof *p)))
            continue;
        p->item = item;
        s->ops->deliver(live, s, p);
        free(p);
        if (live->ended != ended)
            return false;
    }
    return true;
}

/* --- the old edge --- */

bool sr_recent_untold(sr_live *live, uint64_t *number)
{
    struct sr_recent *r = live->recent;
    if (r->added - r->said > SR_RECENT_NUMBERS)
        r->said = r->added - SR_RECENT_NUMBERS;
    if (r->said == r->added)
        return false;
    *number = r->numbers[r->said++ % SR_RECENT_NUMBERS];
    return true;
}

void sr_recent_again(sr_live *live, uint32_t n)
{
    live->recent->said -= n;
}
