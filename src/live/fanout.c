#include "channel.h"
#include "recent.h"

#include <stdlib.h>

static sr_channel *busy_first(const sr_live *live)
{
    return SR_LIST_ENTRY(live->busy.next, sr_channel, link);
}

static sr_publication *first(const sr_channel *c)
{
    return SR_LIST_ENTRY(c->publications.next, sr_publication, link);
}

static void forget(sr_publication *p)
{
    sr_link_remove(&p->cursor);
    sr_link_remove(&p->link);
    free(p);
}

/* The channel has its publication: the next one of the channel follows. */
static void done(sr_live *live, sr_channel *c, sr_publication *p)
{
    live->pending -= p->bytes;
    forget(p);
    if (!sr_link_alone(&c->publications)) {
        sr_link_append(&live->busy, &c->link); /* others first */
        return;
    }
    sr_link_remove(&c->link);
    sr_channel_unused(live, c);
}

static void deliver_one(sr_live *live, sr_subscription *sub, const sr_publication *p)
{
    sr_subscriber *s = sub->subscriber;
    if ((int32_t)(p->sequence - sub->since) <= 0 || s->arrival > p->told)
        return;
    const sr_bytes prev = p->item.prev_id;
    bool gap = p->gap || (prev.len && sub->expects && sub->expects != sr_channel_mark(live, prev));
    sub->expects = 0;
    if (gap && sub->ordered) {
        sr_counters_add(&live->engine->row->counters.hold_gaps, 1);
        s->ops->gap(live, s);
        return;
    }
    if (!sr_subscription_skips(sub, &p->item))
        s->ops->deliver(live, s, p);
}

/* What a delivery of that takes, in those of SR_LIVE_SLICE: each is copied, or sent. */
static unsigned cost(const sr_publication *p)
{
    return 1 + (unsigned)(p->bytes / SR_LIVE_DELIVERY);
}

/*
 * The next `n` subscribers of the first channel, fewer if the publication is long. Returns how many are left
 * of `n`.
 */
static unsigned deliver(sr_live *live, unsigned n)
{
    sr_channel *c = busy_first(live);
    sr_publication *p = first(c);
    sr_link *at = &p->cursor, *end = &c->subscriptions;
    if (sr_link_alone(at))
        sr_link_append(end->next, at); /* before the first */
    const unsigned each = cost(p);
    for (; n && at->next != end; n -= n < each ? n : each) {
        sr_link *next = at->next;
        sr_link_append(next->next, at); /* behind it */
        deliver_one(live, (sr_subscription *)next, p);
    }
    if (at->next == end)
        done(live, c, p);
    else
        sr_link_append(&live->busy, &c->link);
    return n;
}

bool sr_live_publish(sr_live *live, sr_bytes packed)
{
    sr_counters *counters = &live->engine->row->counters;
    sr_publication *p = NULL;
    sr_channel *c;
    sr_item_view item;
    if (!sr_item_read(packed, &item))
        return false;
    sr_counters_add(&counters->published, 1);
    sr_recent_add(live, item.number, packed);
    c = item.id.len ? sr_channel_make(live, item.channel) : sr_channel_find(live, item.channel);
    if (!c && !item.id.len) /* nobody has subscribed */
        return true;
    bool room = c && live->pending + packed.len <= SR_LIVE_PENDING_MAX;
    if (!room || !(p = malloc(sizeof *p + packed.len))) {
        sr_counters_add(&counters->unpublished, 1);
        if (c) {
            c->lost = true; /* the next one tells those who ask */
            c->last_at = sr_live_second(live);
            sr_channel_remember(c, item.id);
            sr_channel_unused(live, c);
        }
        return false;
    }
    *p = (sr_publication){
        .sequence = ++live->sequence,
        .gap = c->lost || (item.prev_id.len && c->last && !sr_bytes_equal(item.prev_id, sr_channel_last(c))),
        .told = sr_recent_told_at(live, item.number),
        .bytes = packed.len};
    memcpy(p->packed, packed.at, packed.len);
    sr_item_read(sr_bytes_of(p->packed, packed.len), &p->item);
    sr_link_init(&p->link);
    sr_link_init(&p->cursor);
    sr_channel_used(live, c);
    c->lost = false;
    c->last_at = sr_live_second(live);
    if (item.id.len)
        sr_channel_remember(c, p->item.id);
    if (sr_link_alone(&c->publications))
        sr_link_append(&live->busy, &c->link);
    sr_link_append(&c->publications, &p->link);
    c->messages++;
    live->pending += p->bytes;
    return true;
}

void sr_fanout_free(sr_live *live)
{
    while (!sr_link_alone(&live->busy)) {
        sr_channel *c = busy_first(live);
        while (!sr_link_alone(&c->publications))
            forget(first(c));
        sr_link_remove(&c->link);
    }
}

void sr_fanout_step(sr_live *live)
{
    for (unsigned left = SR_LIVE_SLICE; left && !sr_link_alone(&live->busy);)
        left = deliver(live, left);
}
