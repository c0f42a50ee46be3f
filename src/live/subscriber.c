#include "../http/grip.h"
#include "channel.h"

#include <stdlib.h>

void sr_live_tell(const sr_live *live)
{
    for (unsigned i = 0; i < SR_HELD_KINDS; i++)
        atomic_store_explicit(&live->engine->row->held[i], live->held[i], memory_order_relaxed);
}

void sr_subscriber_begin(sr_live *live, sr_subscriber *s, sr_exchange *x, const sr_subscriber_ops *ops)
{
    *s = (sr_subscriber){.ops = ops, .exchange = x};
    sr_link_init(&s->timer);
    live->held[ops->kind]++;
    sr_live_tell(live);
}

bool sr_live_moves(const sr_conn *c)
{
    return c->state != SR_CONN_STREAMS && !c->borrowed && sr_transport_moves(c->transport);
}

/* Takes the subscription out of both lists. */
static void drop(sr_live *live, sr_subscription **at)
{
    sr_subscription *sub = *at;
    sr_channel *c = sub->channel;
    *at = sub->next;
    sr_link_remove(&sub->link);
    if (sub == &sub->subscriber->first)
        sub->channel = NULL;
    else
        free(sub);
    c->n--;
    sr_channel_unused(live, c);
}

void sr_subscriber_end(sr_live *live, sr_subscriber *s)
{
    while (s->subscriptions)
        drop(live, &s->subscriptions);
    sr_timer_set(live, s, 0);
    live->ended++;
    live->held[s->ops->kind]--;
    sr_live_tell(live);
}

static sr_subscription **find(sr_subscriber *s, const sr_channel *c)
{
    sr_subscription **at = &s->subscriptions;
    while (*at && (*at)->channel != c)
        at = &(*at)->next;
    return at;
}

static unsigned number(const sr_subscriber *s)
{
    unsigned n = 0;
    for (const sr_subscription *sub = s->subscriptions; sub; sub = sub->next)
        n++;
    return n;
}

sr_subscribed sr_subscribe(sr_live *live, sr_subscriber *s, const sr_wanted *wanted)
{
    sr_channel *c = sr_channel_make(live, wanted->channel);
    if (!c)
        return SR_SUBSCRIBED_NOT;
    if (*find(s, c))
        return SR_SUBSCRIBED;
    if (number(s) == SR_GRIP_CHANNELS) {
        sr_channel_unused(live, c);
        return SR_SUBSCRIBED_NOT;
    }
    sr_subscription *sub = s->first.channel ? malloc(sizeof *sub) : &s->first;
    if (!sub) {
        sr_channel_unused(live, c);
        return SR_SUBSCRIBED_NOT;
    }
    sr_channel_used(live, c);
    *sub = (sr_subscription){.channel = c,
                             .subscriber = s,
                             .next = s->subscriptions,
                             .since = live->sequence,
                             .expects = wanted->prev_id.len ? sr_channel_mark(live, wanted->prev_id) : 0,
                             .ordered = wanted->prev_id.len > 0,
                             .skips_self = wanted->skips_self};
    sr_link_init(&sub->link);
    sr_link_append(&c->subscriptions, &sub->link);
    s->subscriptions = sub;
    c->n++;
    bool fits = !wanted->prev_id.len || wanted->moved || !c->last ||
                sr_bytes_equal(sr_channel_last(c), wanted->prev_id) ||
                sr_live_second(live) - c->last_at > SR_LIVE_REMEMBERS;
    return fits ? SR_SUBSCRIBED : SR_SUBSCRIBED_LATE;
}

bool sr_subscription_skips(const sr_subscription *sub, const sr_item_view *item)
{
    const sr_subscriber *s = sub->subscriber;
    return sub->skips_self && item->sender.len && s->ops->user &&
           sr_bytes_equal(s->ops->user(s), item->sender);
}

void sr_unsubscribe(sr_live *live, sr_subscriber *s, sr_bytes name)
{
    sr_channel *c = sr_channel_find(live, name);
    sr_subscription **at = c ? find(s, c) : NULL;
    if (at && *at)
        drop(live, at);
}
