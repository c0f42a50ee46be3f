#include "hold.h"

#include "../conn/account.h"
#include "../conn/deadline.h"
#include "../conn/joined.h"
#include "../http/grip.h"
#include "../net/descriptors.h"
#include "channel.h"
#include "clients.h"
#include "held.h"
#include "move.h"
#include "recent.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

static sr_hold *hold_of(const sr_exchange *x)
{
    return x->held;
}

static const sr_protocol *real(const sr_exchange *x)
{
    return x->conn->protocol;
}

static sr_held_early **early_of(sr_hold *h)
{
    sr_held_answer *a = sr_held_answer_of(h);
    return a ? &a->early : &h->early;
}

static sr_held_early *early_take(sr_hold *h)
{
    sr_held_early **at = early_of(h), *taken = *at;
    *at = NULL;
    return taken;
}

static void early_free(sr_held_early *early)
{
    if (!early)
        return;
    sr_buffer_free(&early->fields);
    sr_buffer_free(&early->body);
    free(early);
}

void sr_hold_over(sr_live *live, sr_exchange *x)
{
    sr_hold *h = hold_of(x);
    x->held = NULL;
    x->protocol = real(x);
    if (h->counted)
        sr_clients_left(live, &x->client);
    sr_subscriber_end(live, &h->subscriber);
    early_free(early_take(h));
    sr_held_answer *a = sr_held_answer_of(h);
    if (a) {
        sr_buffer_free(&a->fields);
        sr_buffer_free(&a->body);
        free(a);
    }
    free(h);
}

/* It is a response like any other again. */
static void release(sr_engine *e, sr_hold *h)
{
    sr_exchange *x = h->subscriber.exchange;
    if (x->conn->state == SR_CONN_HELD)
        x->conn->state = SR_CONN_SERVING;
    sr_hold_over(e->live, x);
}

/* --- what ends it --- */

static void end(sr_engine *e, sr_exchange *x)
{
    x->protocol->piece(e, x, sr_bytes_of("", 0), true);
    x->protocol->end(e, x);
}

static void respond(sr_engine *e, sr_exchange *x, int status, sr_bytes fields, sr_bytes body, bool close)
{
    const sr_head head = {status, fields, body.len, SR_LENGTH_UNKNOWN, close};
    sr_bytes made;
    if (x->protocol->head(e, x, &head, &made)) {
        sr_exchange_refuse(e, x, 502, SR_REFUSED_WORKER);
        return;
    }
    x->protocol->piece(e, x, body, true);
    x->protocol->end(e, x);
}

/* A published response has the fields of the held one, where it has none of its own (as in Pushpin). */
static bool inherit(sr_buffer *to, sr_bytes held, sr_bytes own)
{
    sr_bytes name, value;
    while (sr_response_next(&held, &name, &value))
        if (!sr_bytes_equal_nocase(name, SR_BYTES("content-length")) && !sr_response_value(own, name).at &&
            !sr_response_line(to, name, value))
            return false;
    return sr_buffer_add_bytes(to, own);
}

/* It is answered by what was published. */
static void answer_published(sr_engine *e, sr_hold *h, int status, sr_bytes own, sr_bytes body)
{
    sr_exchange *x = h->subscriber.exchange;
    sr_buffer fields = {0};
    bool ok = inherit(&fields, sr_buffer_bytes(&h->answer->fields), own), close = h->answer->close;
    release(e, h);
    if (ok)
        respond(e, x, status, sr_buffer_bytes(&fields), body, close);
    else
        sr_exchange_refuse(e, x, 503, SR_REFUSED_MEMORY);
    sr_buffer_free(&fields);
}

/* The response of the application goes out. */
static void answer_now(sr_engine *e, sr_exchange *x)
{
    sr_hold *h = hold_of(x);
    sr_held_answer a = *h->answer;
    h->answer->fields = h->answer->body = (sr_buffer){0};
    release(e, h);
    respond(e, x, a.status, sr_buffer_bytes(&a.fields), sr_buffer_bytes(&a.body), a.close);
    sr_buffer_free(&a.fields);
    sr_buffer_free(&a.body);
}

/* Ends as the application would end it: the client may come again. */
static void finish(sr_engine *e, sr_hold *h)
{
    sr_exchange *x = h->subscriber.exchange;
    if (sr_held_answer_of(h)) {
        answer_now(e, x);
        return;
    }
    release(e, h);
    end(e, x);
}

/* The client is too far behind: nothing more is kept for it. */
static void drop(sr_engine *e, sr_hold *h)
{
    sr_exchange *x = h->subscriber.exchange;
    sr_counters_add(&e->row->counters.hold_slow, 1);
    x->broken = true;
    release(e, h);
    if (x->conn->state == SR_CONN_STREAMS)
        x->protocol->cut(e, x);
    else
        sr_conn_close(e, x->conn, SR_CLOSED_HOLD);
}

/* --- while it is held --- */

/* More of the stream. May close the connection. */
static void put(sr_engine *e, sr_hold *h, sr_bytes bytes)
{
    sr_exchange *x = h->subscriber.exchange;
    sr_conn *c = x->conn;
    const sr_output *out = x->protocol->output(x);
    if (out && sr_output_pending(out) > e->config.hold_buffer + out->owed + sr_live_unsent(c)) {
        drop(e, h);
        return;
    }
    h->sent_at = sr_live_second(e->live);
    x->protocol->piece(e, x, bytes, false);
    if (e->joined.of)
        sr_joined_flush(e);
    if (c->gone)
        sr_conn_close(e, c, c->why);
    else if (x->protocol->output(x))
        x->protocol->settle(e, x);
}

/* For sr_hold_keep. */
static void remember(sr_engine *e, sr_hold *h, const sr_item_view *item)
{
    bool is_response = sr_held_answer_of(h);
    sr_held_early **at = early_of(h);
    if (h->ends)
        return;
    if (!*at)
        *at = calloc(1, sizeof **at);
    sr_held_early *all = *at;
    if (!all || sr_buffer_len(&all->body) > e->config.hold_buffer ||
        !sr_buffer_add_bytes(&all->fields, item->fields) ||
        !sr_buffer_add_bytes(&all->body, is_response ? item->body : item->stream)) {
        h->ends = is_response ? SR_HELD_OVER : SR_HELD_SLOW;
        return;
    }
    all->status = item->status;
    if (is_response)
        h->ends = SR_HELD_ANSWERED;
    else if (item->has & SR_ITEM_STREAM_CLOSE)
        h->ends = SR_HELD_CLOSED;
}

static void deliver(sr_live *live, sr_subscriber *s, const sr_publication *p)
{
    sr_engine *e = live->engine;
    sr_hold *h = (sr_hold *)s;
    sr_exchange *x = h->subscriber.exchange;
    const sr_item_view *item = &p->item;
    if (!(item->has & (sr_held_answer_of(h) ? SR_ITEM_RESPONSE : SR_ITEM_STREAM | SR_ITEM_STREAM_CLOSE)))
        return;
    sr_counters_add(&e->row->counters.delivered, 1);
    x->messages += !(item->has & SR_ITEM_STREAM_CLOSE);
    if (!h->kept) {
        remember(e, h, item);
    } else if (sr_held_answer_of(h)) {
        answer_published(e, h, item->status, item->fields, item->body);
    } else if (item->has & SR_ITEM_STREAM_CLOSE) {
        release(e, h);
        if (item->has & SR_ITEM_STREAM)
            x->protocol->piece(e, x, item->stream, false);
        end(e, x);
    } else {
        put(e, h, item->stream);
    }
}

static void leave(sr_live *live, sr_subscriber *s)
{
    sr_hold *h = (sr_hold *)s;
    if (h->kept)
        finish(live->engine, h);
    else if (!h->ends)
        h->ends = SR_HELD_OVER;
}

static void due(sr_live *live, sr_subscriber *s)
{
    sr_hold *h = (sr_hold *)s;
    if (sr_held_answer_of(h)) {
        finish(live->engine, h);
        return;
    }
    uint32_t quiet = h->interval ? h->seconds : sr_live_second(live) - h->sent_at;
    sr_timer_set(live, s, quiet < h->seconds ? h->seconds - quiet : h->seconds);
    if (quiet >= h->seconds)
        put(live->engine, h, sr_bytes_of(h->data, h->content));
}

static bool pack(sr_live *live, const sr_subscriber *s, sr_buffer *out)
{
    const sr_hold *h = (const sr_hold *)s;
    return h->kept && sr_move_pack(live, h, out);
}

static sr_bytes user(const sr_subscriber *s)
{
    const sr_hold *h = (const sr_hold *)s;
    return sr_bytes_of(h->data + h->content, h->user);
}

static const sr_subscriber_ops ops[] = {
    [SR_HELD_STREAM] = {SR_HELD_STREAM, deliver, leave, due, leave, pack, NULL, user},
    [SR_HELD_RESPONSE] = {SR_HELD_RESPONSE, deliver, leave, due, leave, pack, NULL, user},
};

/*
 * Whether the client may still read although it has ended its side: the kernel knows it of unix sockets. For
 * TCP --half-closed says so, but only for a response, which ends in time.
 */
static bool reads(const sr_engine *e, const sr_conn *c)
{
    return e->listeners.at[c->listener].is_unix ||
           (e->config.serves_half_closed && sr_held_answer_of(hold_of(c->exchange)));
}

void sr_hold_event(sr_engine *e, sr_conn *c, uint32_t events)
{
    bool ended = events & EPOLLRDHUP;
    if (events & (EPOLLHUP | EPOLLERR) || (ended && !c->out && !reads(e, c))) {
        sr_account_over(e, c->exchange, SR_OVER_WHOLE); /* as such responses end */
        sr_conn_close(e, c, SR_CLOSED_CLIENT);
        return;
    }
    if (ended && !sr_conn_watch(e, c, c->out ? EPOLLOUT : 0))
        return;
    if (events & EPOLLOUT)
        c->protocol->writable(e, c);
}

/* --- the response of the application, on its way --- */

static sr_response_error head(sr_engine *e, sr_exchange *x, const sr_head *h, sr_bytes *made)
{
    sr_hold *hold = hold_of(x);
    sr_head open = *h;
    open.length = open.app_length = SR_LENGTH_UNKNOWN;
    if (h->status < 200 || !sr_held_answer_of(hold))
        return real(x)->head(e, x, h->status < 200 ? h : &open, made);
    sr_held_answer *a = sr_held_answer_of(hold);
    if (!sr_buffer_add_bytes(&a->fields, h->fields))
        return SR_RESPONSE_NO_MEMORY;
    a->status = h->status;
    a->close = h->close;
    *made = h->fields;
    return SR_RESPONSE_OK;
}

static void piece(sr_engine *e, sr_exchange *x, sr_bytes body, bool last)
{
    sr_hold *h = hold_of(x);
    sr_held_answer *a = sr_held_answer_of(h);
    if (a && sr_buffer_len(&a->body) + body.len <= SR_HOLD_ANSWER_MAX && sr_buffer_add_bytes(&a->body, body))
        return;
    if (a) { /* it is too large */
        sr_held_answer large = *a;
        const sr_head head_of = {large.status, sr_buffer_bytes(&large.fields), SR_LENGTH_UNKNOWN,
                                 SR_LENGTH_UNKNOWN, large.close};
        sr_bytes made;
        a->fields = a->body = (sr_buffer){0};
        release(e, h);
        bool failed = x->protocol->head(e, x, &head_of, &made);
        if (!failed)
            x->protocol->piece(e, x, sr_buffer_bytes(&large.body), false);
        sr_buffer_free(&large.fields);
        sr_buffer_free(&large.body);
        if (failed) {
            sr_exchange_refuse(e, x, 502, SR_REFUSED_WORKER);
            return;
        }
    }
    real(x)->piece(e, x, body, last);
}

static void file(sr_engine *e, sr_exchange *x, const sr_content *content)
{
    (void)e;
    (void)x; /* workers send such a body as bytes */
    sr_descriptors_discard(content->fd);
    sr_parts_free(content->parts);
}

static sr_output *output(const sr_exchange *x)
{
    return real(x)->output(x);
}

static bool settle(sr_engine *e, sr_exchange *x)
{
    return real(x)->settle(e, x);
}

/* The worker has not said that it is to be kept. */
static void over(sr_engine *e, sr_exchange *x)
{
    if (sr_held_answer_of(hold_of(x))) {
        answer_now(e, x);
        return;
    }
    release(e, hold_of(x));
    x->protocol->end(e, x);
}

static void cut(sr_engine *e, sr_exchange *x)
{
    bool unanswered = sr_held_answer_of(hold_of(x));
    release(e, hold_of(x));
    if (unanswered)
        sr_exchange_refuse(e, x, 502, SR_REFUSED_WORKER);
    else
        x->protocol->cut(e, x);
}

static void refuse(sr_engine *e, sr_exchange *x, int status, sr_refusal why, const char *rule)
{
    release(e, hold_of(x));
    x->protocol->refuse(e, x, status, why, rule);
}

static const sr_protocol holding = {
    .head = head,
    .piece = piece,
    .file = file,
    .output = output,
    .settle = settle,
    .end = over,
    .cut = cut,
    .refuse = refuse,
};

/* --- from the worker to here --- */

static bool prepared(sr_hold *h, const sr_grip *g, const sr_buffer *content)
{
    h->content = (uint16_t)sr_buffer_len(content);
    if (h->content)
        memcpy(h->data, sr_buffer_at(content), h->content);
    h->user = (uint8_t)g->user.len;
    if (h->user)
        memcpy(h->data + h->content, g->user.at, h->user);
    h->seconds = g->hold == SR_GRIP_STREAM ? g->keep_alive : g->timeout;
    h->interval = g->interval;
    return g->hold == SR_GRIP_STREAM || (h->answer = calloc(1, sizeof *h->answer));
}

/* False: it is late, or there is no memory. */
static bool subscribed(sr_live *live, sr_hold *h, sr_bytes at)
{
    sr_bytes value = {NULL, 0};
    sr_grip_channel channel;
    bool ok = true;
    while (ok && sr_grip_next(&at, &value, &channel)) {
        const sr_wanted wanted = {channel.name, channel.prev_id, channel.skips_self, false};
        ok = sr_subscribe(live, &h->subscriber, &wanted) == SR_SUBSCRIBED;
    }
    return ok;
}

bool sr_hold_has(const sr_exchange *x)
{
    return x->protocol == &holding;
}

void sr_hold_begin(sr_live *live, sr_exchange *x, sr_bytes lines)
{
    sr_engine *e = live->engine;
    sr_grip g;
    if (x->held || x->is_head || x->is_tunnel || x->lent || sr_grip_read(lines, &g) || !g.hold)
        return;
    sr_buffer content = {0};
    sr_hold *h = NULL;
    if (sr_grip_content(&g, &content) &&
        (h = calloc(1, offsetof(sr_hold, data) + sr_buffer_len(&content) + g.user.len))) {
        sr_subscriber_begin(live, &h->subscriber, x,
                            &ops[g.hold == SR_GRIP_STREAM ? SR_HELD_STREAM : SR_HELD_RESPONSE]);
        x->held = h;
    }
    bool ok = h && prepared(h, &g, &content);
    sr_buffer_free(&content);
    sr_refusal why = SR_REFUSED_MEMORY;
    if (ok && e->config.hold_per_client) {
        h->counted = sr_clients_came(live, &x->client, e->config.hold_per_client);
        ok = h->counted;
        why = SR_REFUSED_HOLD;
    }
    if (!ok) {
        if (h)
            sr_hold_over(live, x);
        sr_exchange_refuse(e, x, 503, why);
        return;
    }
    if (!subscribed(live, h, g.lines))
        h->ends = SR_HELD_OVER;
    x->protocol = &holding;
}

/* A client that is gone without a word is noticed in the end. */
static void keep_alive(const sr_conn *c)
{
    int on = 1;
    setsockopt(c->source.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

/* What was published already leaves nothing to be kept. */
static void end_early(sr_engine *e, sr_hold *h)
{
    sr_exchange *x = h->subscriber.exchange;
    bool is_response = sr_held_answer_of(h);
    sr_held_early *was = early_take(h);
    if (h->ends == SR_HELD_SLOW) {
        drop(e, h);
    } else if (h->ends == SR_HELD_ANSWERED) {
        answer_published(e, h, was->status, sr_buffer_bytes(&was->fields), sr_buffer_bytes(&was->body));
    } else {
        if (was && !is_response)
            real(x)->piece(e, x, sr_buffer_bytes(&was->body), false);
        finish(e, h);
    }
    early_free(was);
}

void sr_hold_keep(sr_live *live, sr_exchange *x)
{
    sr_engine *e = live->engine;
    sr_conn *c = x->conn;
    sr_hold *h = hold_of(x);
    x->protocol = real(x);
    x->back_at = e->now;
    sr_exchange_hold(x, e->now);
    x->is_own = true; /* the time that it is held is no latency */
    sr_deadline_clear_exchange(e, x);
    if (e->joined.of == c)
        sr_joined_flush(e);
    sr_accesslog_keep(e, x);
    if (c->gone) {
        sr_conn_close(e, c, c->why);
        return;
    }
    h->kept = true;
    if (h->ends || !sr_live_stays(live, &h->subscriber)) {
        end_early(e, h);
        return;
    }
    h->sent_at = sr_live_second(live);
    sr_timer_set(live, &h->subscriber, h->seconds);
    if (c->state != SR_CONN_STREAMS) {
        c->state = SR_CONN_HELD;
        keep_alive(c);
    }
    sr_output *out = x->protocol->output(x);
    if (out) /* the client is not behind with what it had no time to take */
        out->owed = sr_output_pending(out);
    if (out && !x->protocol->settle(e, x))
        return;
    if (c->state == SR_CONN_HELD && !sr_conn_watch(e, c, EPOLLRDHUP | (c->out ? EPOLLOUT : 0)))
        return;
    sr_held_early *was = early_take(h);
    if (was)
        put(e, h, sr_buffer_bytes(&was->body));
    early_free(was);
}

bool sr_hold_adopt(sr_live *live, sr_conn *c, sr_bytes packed)
{
    sr_engine *e = live->engine;
    sr_exchange *x = sr_exchange_add(e, c);
    sr_hold *h = x ? sr_move_unpack(live, x, packed, ops) : NULL;
    if (!h)
        return false;
    if (e->config.hold_per_client)
        h->counted = sr_clients_came(live, &x->client, UINT32_MAX);
    uint32_t quiet = sr_live_second(live) - h->sent_at;
    sr_timer_set(live, &h->subscriber, quiet < h->seconds ? h->seconds - quiet : h->seconds ? 1 : 0);
    c->state = SR_CONN_HELD;
    if (sr_conn_watch(e, c, EPOLLRDHUP))
        sr_recent_arrive(live, &h->subscriber);
    return true;
}
