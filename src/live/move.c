#include "move.h"

#include "channel.h"

#include <stdlib.h>

/* Of an exchange; then the values. */
typedef struct moved {
    sr_peer client;
    int64_t ready_at, before_ns, given_at, back_at;
    uint64_t number, left, sent, format; /* format: id of the log format of the values */
    uint32_t status, head_bytes, messages, held_at, values, unused_too;
    uint8_t version, wants_close, trusted, proxied, keep_alive, chunked, cut_by_reset, resets;
} moved;

/* Of a held response; then content, user, fields and body. */
typedef struct moved_hold {
    uint32_t seconds, sent_at, content, user, fields, body;
    int32_t status; /* 0: it is a stream */
    uint32_t is;    /* of a response: its connection closes; of a stream: it is kept alive by an interval */
} moved_hold;

/* Of each subscription, behind their number; then its name, and the id of the last publication. */
typedef struct moved_subscription {
    uint8_t name, last, ordered, skips_self;
} moved_subscription;

bool sr_move_quiet(const sr_subscriber *s)
{
    for (const sr_subscription *sub = s->subscriptions; sub; sub = sub->next)
        if (!sr_link_alone(&sub->channel->publications))
            return false;
    return true;
}

static uint32_t length(const sr_buffer *b)
{
    return b ? (uint32_t)sr_buffer_len(b) : 0;
}

static uint64_t format(const sr_engine *e)
{
    return e->log ? sr_logformat_id(e->log->format) : 0;
}

bool sr_move_pack_exchange(const sr_engine *e, const sr_exchange *x, sr_buffer *out)
{
    moved m = {.client = x->client,
               .ready_at = x->ready_at,
               .before_ns = x->before_ns,
               .given_at = x->given_at,
               .back_at = x->back_at,
               .number = x->number,
               .left = x->left,
               .sent = x->conn->sent - x->sent_from,
               .format = format(e),
               .status = x->status,
               .head_bytes = x->head_bytes,
               .messages = x->messages,
               .held_at = x->held_at,
               .values = length(x->values),
               .version = x->version,
               .wants_close = x->wants_close,
               .trusted = x->trusted,
               .proxied = x->proxied,
               .keep_alive = x->keep_alive,
               .chunked = x->chunked,
               .cut_by_reset = x->cut_by_reset,
               .resets = x->conn->resets};
    return sr_buffer_add(out, &m, sizeof m) &&
           (!x->values || sr_buffer_add_bytes(out, sr_buffer_bytes(x->values)));
}

bool sr_move_pack_subscriptions(const sr_subscriber *s, sr_buffer *out)
{
    uint32_t n = 0;
    for (const sr_subscription *sub = s->subscriptions; sub; sub = sub->next)
        n++;
    bool ok = sr_buffer_add(out, &n, sizeof n);
    for (const sr_subscription *sub = s->subscriptions; ok && sub; sub = sub->next) {
        const sr_channel *c = sub->channel;
        moved_subscription one = {c->name_len, sub->ordered ? c->last_len : 0, sub->ordered, sub->skips_self};
        ok = sr_buffer_add(out, &one, sizeof one) && sr_buffer_add(out, c->name, one.name) &&
             sr_buffer_add(out, c->last, one.last);
    }
    return ok;
}

bool sr_move_pack(sr_live *live, const sr_hold *h, sr_buffer *out)
{
    const sr_held_answer *a = sr_held_answer_of(h);
    moved_hold m = {.seconds = h->seconds,
                    .sent_at = h->sent_at,
                    .content = h->content,
                    .user = h->user,
                    .is = h->interval};
    if (a) {
        m.fields = length(&a->fields);
        m.body = length(&a->body);
        m.status = a->status;
        m.is = a->close;
    }
    return sr_move_quiet(&h->subscriber) &&
           sr_move_pack_exchange(live->engine, h->subscriber.exchange, out) &&
           sr_buffer_add(out, &m, sizeof m) && sr_buffer_add(out, h->data, m.content + m.user) &&
           (!a || (sr_buffer_add_bytes(out, sr_buffer_bytes(&a->fields)) &&
                   sr_buffer_add_bytes(out, sr_buffer_bytes(&a->body)))) &&
           sr_move_pack_subscriptions(&h->subscriber, out);
}

/* --- in the other edge --- */

bool sr_move_cut(sr_bytes *from, size_t len, sr_bytes *out)
{
    if (len > from->len)
        return false;
    *out = sr_bytes_of(from->at, len);
    *from = sr_bytes_of(from->at + len, from->len - len);
    return true;
}

bool sr_move_cut_struct(sr_bytes *from, void *to, size_t len)
{
    sr_bytes bytes;
    if (!sr_move_cut(from, len, &bytes))
        return false;
    memcpy(to, bytes.at, len);
    return true;
}

static void describe(sr_exchange *x, const moved *m)
{
    x->client = m->client;
    x->ready_at = m->ready_at;
    x->before_ns = m->before_ns;
    x->given_at = m->given_at;
    x->back_at = m->back_at;
    x->number = m->number;
    x->left = m->left;
    x->conn->sent = m->sent;
    x->sent_from = 0;
    x->status = (uint16_t)m->status;
    x->head_bytes = m->head_bytes;
    x->messages = m->messages;
    x->held_at = m->held_at;
    x->version = m->version;
    x->wants_close = m->wants_close;
    x->trusted = m->trusted;
    x->proxied = m->proxied;
    x->keep_alive = m->keep_alive;
    x->chunked = m->chunked;
    x->cut_by_reset = m->cut_by_reset;
    x->conn->resets = m->resets; /* the socket has the option already */
    x->owed = x->is_own = true;
}

bool sr_move_unpack_exchange(sr_engine *e, sr_exchange *x, sr_bytes *packed)
{
    moved m;
    sr_bytes values;
    if (!sr_move_cut_struct(packed, &m, sizeof m) || !sr_move_cut(packed, m.values, &values))
        return false;
    describe(x, &m);
    if (!values.len || m.format != format(e))
        return true; /* its line lacks them */
    x->values = calloc(1, sizeof *x->values);
    return x->values && sr_buffer_add_bytes(x->values, values);
}

bool sr_move_unpack_subscriptions(sr_live *live, sr_subscriber *s, sr_bytes *packed)
{
    uint32_t n;
    if (!sr_move_cut_struct(packed, &n, sizeof n))
        return false;
    for (; n; n--) {
        sr_bytes name, last;
        moved_subscription one;
        if (!sr_move_cut_struct(packed, &one, sizeof one) || !sr_move_cut(packed, one.name, &name) ||
            !sr_move_cut(packed, one.last, &last) || !name.len ||
            sr_subscribe(live, s, &(sr_wanted){name, last, one.skips_self, true}) == SR_SUBSCRIBED_NOT)
            return false;
        s->subscriptions->ordered = one.ordered;
    }
    return true;
}

static bool has_answer(sr_hold *h, const moved_hold *m, sr_bytes fields, sr_bytes body)
{
    if (!m->status)
        return true;
    if (!(h->answer = calloc(1, sizeof *h->answer)))
        return false;
    h->answer->status = m->status;
    h->answer->close = m->is;
    return sr_buffer_add_bytes(&h->answer->fields, fields) && sr_buffer_add_bytes(&h->answer->body, body);
}

sr_hold *sr_move_unpack(sr_live *live, sr_exchange *x, sr_bytes packed, const sr_subscriber_ops *ops)
{
    sr_bytes data, fields, body;
    moved_hold m;
    if (!sr_move_unpack_exchange(live->engine, x, &packed) || !sr_move_cut_struct(&packed, &m, sizeof m) ||
        m.content > UINT16_MAX || m.user > UINT8_MAX || !sr_move_cut(&packed, m.content + m.user, &data) ||
        !sr_move_cut(&packed, m.fields, &fields) || !sr_move_cut(&packed, m.body, &body))
        return NULL;
    sr_hold *h = calloc(1, offsetof(sr_hold, data) + data.len);
    if (!h)
        return NULL;
    sr_subscriber_begin(live, &h->subscriber, x, &ops[m.status ? SR_HELD_RESPONSE : SR_HELD_STREAM]);
    h->kept = true;
    h->seconds = m.seconds;
    h->sent_at = m.sent_at;
    h->interval = !m.status && m.is;
    h->content = (uint16_t)m.content;
    h->user = (uint8_t)m.user;
    if (data.len)
        memcpy(h->data, data.at, data.len);
    x->held = h; /* the exchange frees it when it ends */
    bool ok = has_answer(h, &m, fields, body) && sr_move_unpack_subscriptions(live, &h->subscriber, &packed);
    return ok ? h : NULL;
}
