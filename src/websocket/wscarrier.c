#include "wscarrier.h"

#include "../conn/account.h"
#include "../conn/joined.h"
#include "../live/channel.h"
#include "../live/clients.h"
#include "wsevent.h"

#include <stdlib.h>

#define LATER_NS                                                                                             \
    (10 * SR_MILLISECOND) /* 64 of them: some percent of the time if the queue is full for long */

bool sr_websocket_count(sr_websocket *ws)
{
    size_t now = sr_wsframe_memory(&ws->frames) + ws->events.cap + ws->early.cap;
    ws->all->memory += now - ws->memory;
    if (!ws->memory)
        ws->since = sr_live_second(ws->all->live);
    ws->memory = now;
    return ws->all->memory <= SR_WEBSOCKETS_MEMORY + SR_WEBSOCKETS_MEMORY / 4;
}

void sr_websocket_errand_over(sr_websocket *ws)
{
    if (!ws->errand)
        return;
    ws->all->given -= ws->given;
    ws->given = ws->entering = false;
    sr_errand_end(ws->all->engine, ws->errand);
    ws->errand = NULL;
}

void sr_websocket_reply_over(sr_websocket *ws)
{
    if (!ws->reply)
        return;
    sr_buffer_free(&ws->reply->fields);
    sr_buffer_free(&ws->reply->body);
    free(ws->reply);
    ws->reply = NULL;
}

void sr_websocket_ask_later(sr_websocket *ws)
{
    sr_link_append(&ws->all->later, &ws->asking);
    ws->all->again_at = ws->all->engine->now + LATER_NS;
}

void sr_websocket_forget_events(sr_websocket *ws)
{
    sr_buffer_free(&ws->events);
    ws->n_events = 0;
    ws->end_at = 0;
    ws->told = false; /* what told the application of the end may be among them */
    sr_websocket_count(ws);
}

/* --- the end --- */

void sr_wscarrier_tell_end(sr_websocket *ws)
{
    if (ws->told || !ws->accepted || ws->detached)
        return;
    size_t before = sr_buffer_len(&ws->events);
    ws->told = sr_wsevent_add(&ws->events, SR_WSEVENT_DISCONNECT, sr_bytes_of("", 0));
    if (ws->told)
        ws->end_at = before;
}

void sr_wscarrier_over(sr_websocket *ws)
{
    sr_websockets *all = ws->all;
    if (ws->counted)
        sr_clients_left(all->live, &ws->client.client);
    ws->counted = false;
    if (ws->subscriber.ops)
        sr_subscriber_end(all->live, &ws->subscriber);
    ws->subscriber.ops = NULL;
    ws->subscriber.exchange = NULL;
    ws->carrier = NULL;
    ws->state = SR_WEBSOCKET_OVER;
    sr_wsframe_free(&ws->frames);
    sr_buffer_free(&ws->early);
    free(ws->alive);
    ws->alive = NULL;
    if (ws->errand && !ws->accepted && sr_errand_take_back(all->engine, ws->errand))
        sr_websocket_errand_over(ws);
    if (!ws->errand && !ws->accepted) /* it hears nothing of who was not opened */
        sr_buffer_free(&ws->events);
    sr_wscarrier_tell_end(ws);
    sr_websocket_count(ws);
    sr_websocket_ask(ws);
}

sr_exchange *sr_wscarrier_release(sr_websocket *ws)
{
    sr_exchange *x = ws->carrier;
    x->held = NULL;
    if (x->conn->state == SR_CONN_HELD)
        x->conn->state = SR_CONN_SERVING;
    if (ws->state < SR_WEBSOCKET_OPEN && !ws->streams) { /* they are of its next request */
        x->conn->in = ws->early;
        ws->early = (sr_buffer){0};
    }
    sr_wscarrier_over(ws);
    return x;
}

void sr_wscarrier_finish(sr_websocket *ws)
{
    sr_engine *e = ws->all->engine;
    sr_exchange *x = sr_wscarrier_release(ws);
    x->protocol->piece(e, x, sr_bytes_of("", 0), true);
    x->protocol->end(e, x);
}

void sr_wscarrier_drop(sr_websocket *ws)
{
    sr_engine *e = ws->all->engine;
    sr_exchange *x = sr_wscarrier_release(ws);
    sr_conn *c = x->conn;
    if (c->state == SR_CONN_STREAMS)
        x->protocol->cut(e, x);
    else
        sr_conn_close(e, c, x->broken ? SR_CLOSED_HOLD : SR_CLOSED_ERROR);
}

void sr_wscarrier_gone(sr_websocket *ws)
{
    sr_engine *e = ws->all->engine;
    sr_exchange *x = ws->carrier;
    if (ws->state >= SR_WEBSOCKET_OPEN)
        sr_account_over(e, x, SR_OVER_WHOLE);
    if (ws->streams) {
        sr_wscarrier_release(ws);
        x->protocol->cut(e, x);
    } else {
        sr_conn_close(e, x->conn, SR_CLOSED_CLIENT);
    }
}

/* --- frames --- */

void sr_wscarrier_schedule(sr_websocket *ws)
{
    uint32_t now = sr_live_second(ws->all->live), next = 0;
    uint32_t each = (uint32_t)(ws->all->engine->config.websocket_ping_ns / SR_SECOND);
    if (each)
        next = (ws->pings ? ws->pinged : ws->heard) + each;
    if (ws->alive && (!next || ws->alive->due < next))
        next = ws->alive->due;
    if (ws->window && (!next || ws->window + sr_websocket_patience(ws) < next))
        next = ws->window + sr_websocket_patience(ws);
    if (ws->state == SR_WEBSOCKET_OPEN)
        sr_timer_set(ws->all->live, &ws->subscriber, !next ? 0 : next > now ? next - now : 1);
}

bool sr_wscarrier_watch(sr_websocket *ws)
{
    sr_exchange *x = ws->carrier;
    if (ws->streams)
        return true;
    bool reads = !x->conn->out && !ws->paused && ws->state >= SR_WEBSOCKET_OPEN;
    uint32_t events = reads ? EPOLLIN : ws->state < SR_WEBSOCKET_OPEN ? EPOLLRDHUP : 0u;
    return sr_conn_watch(ws->all->engine, x->conn, events | (x->conn->out ? EPOLLOUT : 0u));
}

static uint64_t pending(const sr_websocket *ws)
{
    const sr_output *out = ws->carrier->protocol->output(ws->carrier);
    return out ? sr_output_pending(out) : 0;
}

bool sr_wscarrier_behind(const sr_websocket *ws)
{
    return ws->carrier && pending(ws) > ws->all->engine->config.hold_buffer;
}

bool sr_wscarrier_publish(sr_websocket *ws, sr_wsframe_kind kind, sr_bytes bytes)
{
    sr_engine *e = ws->all->engine;
    if (pending(ws) > e->config.hold_buffer + ws->owed + sr_live_unsent(ws->carrier->conn)) {
        sr_counters_add(&e->row->counters.hold_slow, 1);
        ws->carrier->broken = true;
        sr_wscarrier_drop(ws);
        return false;
    }
    return sr_wscarrier_send(ws, kind, bytes);
}

/* `owed`: bytes of it that are an answer to the client, for which --hold-buffer is not meant. */
static bool put(sr_websocket *ws, sr_bytes frames, size_t owed)
{
    sr_engine *e = ws->all->engine;
    sr_exchange *x = ws->carrier;
    sr_conn *c = x->conn;
    uint64_t answers = (pending(ws) ? ws->owed : 0) + owed, left;
    x->protocol->piece(e, x, frames, false);
    if (e->joined.of && !ws->streams)
        sr_joined_flush(e);
    if (c->gone && !ws->streams) { /* of others, the session hears by itself */
        sr_conn_close(e, c, c->why);
        return false;
    }
    left = pending(ws);
    ws->owed = answers < left ? answers : left;
    if (!left)
        return true;
    if (!x->protocol->settle(e, x))
        return false;
    if (!pending(ws)) /* what was behind went the same way, and nothing else tells that it has */
        sr_websocket_ask(ws);
    return sr_wscarrier_watch(ws);
}

bool sr_wscarrier_put(sr_websocket *ws, sr_bytes frames)
{
    return put(ws, frames, frames.len);
}

bool sr_wscarrier_send(sr_websocket *ws, sr_wsframe_kind kind, sr_bytes bytes)
{
    sr_buffer *out = &ws->all->out;
    sr_buffer_reset(out);
    if (!sr_wsframe_add(out, kind, bytes)) {
        sr_wscarrier_drop(ws);
        return false;
    }
    return put(ws, sr_buffer_bytes(out), 0);
}

bool sr_wscarrier_close(sr_websocket *ws, unsigned code, sr_bytes reason)
{
    char frame[2 + SR_WSFRAME_CONTROL_MAX];
    if (ws->state == SR_WEBSOCKET_CLOSING)
        return true;
    if (!sr_wscarrier_put(ws, sr_bytes_of(frame, sr_wsframe_close(frame, code, reason))))
        return false;
    if (ws->closed) {
        sr_wscarrier_finish(ws);
        return false;
    }
    ws->state = SR_WEBSOCKET_CLOSING;
    ws->paused = false;
    sr_timer_set(ws->all->live, &ws->subscriber, SR_WEBSOCKET_CLOSE_S);
    return sr_wscarrier_watch(ws);
}

void sr_wscarrier_fail(sr_websocket *ws, unsigned code, sr_bytes reason)
{
    sr_engine *e = ws->all->engine;
    if (ws->state == SR_WEBSOCKET_OPENING) {
        sr_exchange *x = sr_wscarrier_release(ws);
        x->protocol->refuse(e, x, code == SR_CLOSE_AWAY ? 503 : 502,
                            code == SR_CLOSE_AWAY ? SR_REFUSED_STOP : SR_REFUSED_WORKER, NULL);
        return;
    }
    char frame[2 + SR_WSFRAME_CONTROL_MAX];
    if (ws->state == SR_WEBSOCKET_CLOSING ||
        sr_wscarrier_put(ws, sr_bytes_of(frame, sr_wsframe_close(frame, code, reason))))
        sr_wscarrier_finish(ws);
}

void sr_websocket_invalid(sr_websocket *ws, const char *why)
{
    if (why)
        ws->all->invalid(ws->all->with, why);
    if (ws->carrier)
        sr_wscarrier_fail(ws, SR_CLOSE_ERROR, sr_bytes_of("", 0));
}
