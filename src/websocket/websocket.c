#include "websocket.h"

#include "../base/random.h"
#include "../live/channel.h"
#include "../live/clients.h"
#include "../live/move.h"
#include "../live/recent.h"
#include "eventhead.h"
#include "wsask.h"
#include "wscarrier.h"
#include "wsevent.h"
#include "wsmove.h"
#include "wsread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PINGS_MAX = 2, STEP = 64, ROOM_STEP = 16 };

/* --- as a subscriber --- */

static void deliver(sr_live *live, sr_subscriber *s, const sr_publication *p)
{
    sr_websocket *ws = (sr_websocket *)s;
    const sr_item_view *item = &p->item;
    sr_bytes content = item->has & SR_ITEM_SAME ? item->stream : item->message;
    if (ws->state != SR_WEBSOCKET_OPEN || !(item->has & (SR_ITEM_TEXT | SR_ITEM_BINARY | SR_ITEM_WS_CLOSE)))
        return;
    sr_counters_add(&live->engine->row->counters.delivered, 1);
    ws->carrier->messages += !(item->has & SR_ITEM_WS_CLOSE);
    if (item->has & SR_ITEM_WS_CLOSE) {
        sr_wscarrier_close(ws, item->code ? item->code : SR_CLOSE_NONE, content);
        return;
    }
    if (ws->alive && !ws->alive->interval)
        ws->alive->due = sr_live_second(live) + ws->alive->seconds;
    sr_wscarrier_publish(ws, item->has & SR_ITEM_TEXT ? SR_WSFRAME_TEXT : SR_WSFRAME_BINARY, content);
}

static void leave(sr_live *live, sr_subscriber *s)
{
    sr_websocket *ws = (sr_websocket *)s;
    unsigned code = live->engine->retiring ? SR_CLOSE_RESTART : SR_CLOSE_AWAY;
    bool asked = ws->errand || sr_buffer_len(&ws->events);
    if (ws->state != SR_WEBSOCKET_OPEN || !asked || ws->broken) { /* the second time: now */
        sr_wscarrier_fail(ws, code, sr_bytes_of("", 0));
        return;
    }
    ws->broken = (uint16_t)code;
    ws->paused = true;
    sr_wscarrier_watch(ws);
}

static void gap(sr_live *live, sr_subscriber *s)
{
    (void)live;
    sr_wscarrier_close((sr_websocket *)s, SR_CLOSE_RESTART, sr_bytes_of("", 0));
}

/* Sends what keeps it alive, if that is due. False: it is over for the client. */
static bool keep_alive(sr_websocket *ws, uint32_t now)
{
    sr_wsalive *alive = ws->alive;
    if (!alive || now < alive->due)
        return true;
    alive->due = now + alive->seconds;
    return sr_wscarrier_send(ws, alive->kind, sr_bytes_of(alive->content, alive->len));
}

/* Bytes of the client may be there, and are not read for now. */
static bool is_deaf(const sr_websocket *ws)
{
    return ws->paused || (!ws->streams && ws->carrier->conn->out);
}

static bool ping(sr_websocket *ws, uint32_t now, uint32_t each)
{
    uint32_t since = ws->pings ? ws->pinged : ws->heard;
    if (!each || now - since < each)
        return true;
    if (ws->pings == PINGS_MAX && !is_deaf(ws)) {
        sr_wscarrier_gone(ws);
        return false;
    }
    ws->pings = 1 + (ws->pings && !is_deaf(ws));
    ws->pinged = now;
    return sr_wscarrier_send(ws, SR_WSFRAME_PING, sr_bytes_of("", 0));
}

/* --body-rate, of a message that is not complete. False: it is over for the client. */
static bool comes(sr_websocket *ws, uint32_t now)
{
    uint32_t patience = sr_websocket_patience(ws);
    if (!ws->window || now - ws->window < patience)
        return true;
    if (!is_deaf(ws) && ws->got < (uint64_t)patience * ws->all->engine->config.body_rate) {
        sr_wscarrier_fail(ws, SR_CLOSE_POLICY, SR_BYTES("the message comes too slowly"));
        return false;
    }
    ws->window = now;
    ws->got = 0;
    return true;
}

static void due(sr_live *live, sr_subscriber *s)
{
    sr_websocket *ws = (sr_websocket *)s;
    uint32_t now = sr_live_second(live),
             each = (uint32_t)(live->engine->config.websocket_ping_ns / SR_SECOND);
    if (ws->state == SR_WEBSOCKET_CLOSING) {
        sr_wscarrier_finish(ws);
        return;
    }
    if (keep_alive(ws, now) && ping(ws, now, each) && comes(ws, now))
        sr_wscarrier_schedule(ws);
}

static bool pack(sr_live *live, const sr_subscriber *s, sr_buffer *out)
{
    (void)live;
    return sr_wsmove_pack((const sr_websocket *)s, out);
}

static void passed(sr_subscriber *s)
{
    ((sr_websocket *)s)->told = true; /* by the other edge, when it is over */
}

/* As the application has said by the meta field of that name. */
static sr_bytes user(const sr_subscriber *s)
{
    return sr_eventhead_meta_of(&((const sr_websocket *)s)->meta, SR_BYTES("user"));
}

static const sr_subscriber_ops ops = {SR_HELD_WEBSOCKET, deliver, gap, due, leave, pack, passed, user};

/* --- all of them --- */

sr_websockets *sr_websockets_new(sr_engine *e, sr_live *live)
{
    sr_websockets *all = calloc(1, sizeof *all);
    if (!all)
        return NULL;
    all->engine = e;
    all->live = live;
    all->ops = &ops;
    sr_link_init(&all->list);
    sr_link_init(&all->asking);
    sr_link_init(&all->later);
    return all;
}

static void forget(sr_websocket *ws)
{
    sr_websockets *all = ws->all;
    sr_websocket_errand_over(ws);
    sr_link_remove(&ws->link);
    sr_link_remove(&ws->asking);
    sr_buffer_free(&ws->events);
    sr_wsframe_free(&ws->frames);
    all->memory -= ws->memory;
    sr_buffer_free(&ws->meta);
    sr_buffer_free(&ws->head);
    sr_buffer_free(&ws->early);
    sr_websocket_reply_over(ws);
    sr_errand_forget(&ws->client);
    free(ws);
}

void sr_websockets_stop(sr_websockets *all)
{
    for (sr_link *l = all->list.next; l != &all->list; l = l->next) {
        sr_websocket *ws = SR_LIST_ENTRY(l, sr_websocket, link);
        sr_websocket_errand_over(ws);
    }
}

void sr_websockets_free(sr_websockets *all)
{
    if (!all)
        return;
    while (!sr_link_alone(&all->list))
        forget(SR_LIST_ENTRY(all->list.next, sr_websocket, link));
    sr_buffer_free(&all->out);
    sr_buffer_free(&all->pongs);
    sr_buffer_free(&all->text);
    free(all);
}

/*
 * Who has most of the memory for messages, and for longest, pays. A client that sends and goes on has it for
 * a moment.
 */
static void make_room(sr_websockets *all)
{
    const uint32_t now = sr_live_second(all->live);
    for (int n = 0; n < ROOM_STEP && all->memory > SR_WEBSOCKETS_MEMORY; n++) {
        sr_websocket *worst = NULL;
        uint64_t most = 0;
        for (sr_link *l = all->list.next; l != &all->list; l = l->next) {
            sr_websocket *ws = SR_LIST_ENTRY(l, sr_websocket, link);
            uint64_t cost = (uint64_t)ws->memory * (1 + now - ws->since);
            if (cost > most && ws->carrier && !ws->entering && ws->state >= SR_WEBSOCKET_OPEN) {
                most = cost;
                worst = ws;
            }
        }
        if (!worst)
            return;
        all->crowded(all->with, worst);
        sr_websocket_forget_events(worst);
        sr_wscarrier_fail(worst, SR_CLOSE_LATER, SR_BYTES("the server has too many messages"));
    }
}

void sr_websockets_step(sr_websockets *all)
{
    if (all->memory > SR_WEBSOCKETS_MEMORY)
        make_room(all);
    for (int n = 0; n < STEP && sr_websockets_at(all) <= all->engine->now; n++)
        sr_link_append(&all->asking, all->later.next);
    for (int n = 0; n < STEP && sr_websockets_wait(all); n++) {
        sr_websocket *ws = SR_LIST_ENTRY(all->asking.next, sr_websocket, asking);
        sr_link_remove(&ws->asking);
        if (ws->errand || sr_wscarrier_behind(ws)) { /* comes again when that is over */
            sr_wsread_resume(ws);
            continue;
        }
        if (sr_buffer_len(&ws->events)) {
            sr_wsask(ws);
        } else if (ws->state == SR_WEBSOCKET_OVER) {
            forget(ws);
            continue;
        }
        sr_wsread_resume(ws);
    }
}

/* --- one --- */

/* NULL: no memory. */
static sr_websocket *make(sr_websockets *all)
{
    sr_websocket *ws = calloc(1, sizeof *ws);
    if (!ws)
        return NULL;
    ws->all = all;
    sr_link_init(&ws->link);
    sr_link_init(&ws->asking);
    sr_link_append(&all->list, &ws->link);
    sr_wsframe_init(&ws->frames);
    return ws;
}

static bool prepared(sr_websocket *ws, const sr_task *task, const sr_opening *o)
{
    uint64_t random[2]; /* nobody else can guess it from the ids of requests */
    char id[2 * 2 * sizeof random[0] + 1];
    if (!sr_random(random, sizeof random))
        return false;
    int n = snprintf(id, sizeof id, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    if (o->key.len)
        sr_opening_accept(ws->accept, o->key);
    return sr_errand_of(&ws->client, task->exchange) &&
           sr_eventhead_begin(&ws->head, task->request, task->base, sr_bytes_of(id, (size_t)n)) &&
           sr_wsevent_add(&ws->events, SR_WSEVENT_OPEN, sr_bytes_of("", 0));
}

sr_refusal sr_websocket_begin(sr_websockets *all, sr_task *task, const sr_opening *o)
{
    sr_engine *e = all->engine;
    sr_exchange *x = task->exchange;
    sr_conn *c = x->conn;
    sr_websocket *ws = make(all);
    if (!ws)
        return SR_REFUSED_MEMORY;
    ws->streams = c->state == SR_CONN_STREAMS;
    uint32_t most = e->config.hold_per_client;
    bool made = prepared(ws, task, o);
    if (!made || (most && !(ws->counted = sr_clients_came(all->live, &x->client, most)))) {
        forget(ws);
        return made ? SR_REFUSED_HOLD : SR_REFUSED_MEMORY;
    }
    ws->carrier = x;
    x->protocol->taken(e, x);
    x->held = ws;
    sr_websocket_ask(ws);
    if (ws->streams)
        return SR_REFUSED_NOT;
    sr_conn_release(c);
    ws->early = c->in;
    c->in = (sr_buffer){0};
    c->state = SR_CONN_HELD;
    sr_wscarrier_watch(ws);
    return SR_REFUSED_NOT;
}

/* The exchange owns it from the moment at which it has begun as a subscriber. */
bool sr_websocket_adopt(sr_websockets *all, sr_conn *c, sr_bytes packed)
{
    sr_engine *e = all->engine;
    sr_exchange *x = sr_exchange_add(e, c);
    sr_websocket *ws = x && sr_move_unpack_exchange(e, x, &packed) ? make(all) : NULL;
    if (!ws)
        return false;
    if (!sr_errand_of(&ws->client, x)) {
        forget(ws);
        return false;
    }
    ws->state = SR_WEBSOCKET_OPEN;
    ws->accepted = true;
    ws->carrier = x;
    x->held = ws;
    c->state = SR_CONN_HELD;
    sr_subscriber_begin(all->live, &ws->subscriber, x, all->ops);
    if (e->config.hold_per_client)
        ws->counted = sr_clients_came(all->live, &x->client, UINT32_MAX);
    if (!sr_wsmove_unpack(ws, &packed))
        return false;
    sr_wscarrier_schedule(ws);
    if (sr_wscarrier_watch(ws) && sr_recent_arrive(all->live, &ws->subscriber) &&
        sr_transport_holds(c->transport))
        sr_wsread_socket(ws);
    return true;
}

void sr_websocket_drained(sr_websocket *ws)
{
    sr_engine *e = ws->all->engine;
    if (ws->state == SR_WEBSOCKET_REFUSED && ws->errand && ws->errand->slot)
        e->drained(e->with, ws->errand);
    else if (!ws->errand)
        sr_websocket_ask(ws);
    sr_wsread_resume(ws);
}

void sr_websocket_event(sr_websocket *ws, uint32_t events)
{
    sr_conn *c = ws->carrier->conn;
    bool ended = events & (EPOLLHUP | EPOLLERR);
    if (ended || (events & EPOLLRDHUP && ws->state < SR_WEBSOCKET_OPEN)) {
        sr_wscarrier_gone(ws);
        return;
    }
    if (events & EPOLLOUT) {
        if (!c->protocol->writable(ws->all->engine, c) || !sr_wscarrier_watch(ws))
            return;
        if (!c->out)
            sr_websocket_drained(ws);
    }
    if (ws->carrier && events & EPOLLIN && ws->state >= SR_WEBSOCKET_OPEN)
        sr_wsread_socket(ws);
}

bool sr_websocket_data(sr_websocket *ws, char *at, size_t len, bool ended)
{
    if (ws->state < SR_WEBSOCKET_OPEN &&
        len) { /* it may send them, but not so many that its window is taken up */
        ws->paused = true;
        bool kept =
            sr_buffer_len(&ws->early) + len <= SR_WEBSOCKET_EARLY_MAX && sr_buffer_add(&ws->early, at, len);
        if (!sr_websocket_count(ws) || !kept) {
            sr_wscarrier_drop(ws);
            return true;
        }
    } else if (len && !sr_wsread_bytes(ws, at, len)) {
        return true;
    }
    if (ended) { /* after CLOSE, or beside a refusal, it waits for the rest */
        if (ws->state == SR_WEBSOCKET_CLOSING)
            sr_wscarrier_finish(ws);
        else if (!ws->closed && ws->state != SR_WEBSOCKET_REFUSED)
            sr_wscarrier_gone(ws);
        return true;
    }
    ws->paused = ws->paused || sr_wsread_full(ws);
    return !ws->paused;
}
