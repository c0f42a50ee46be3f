#include "wsorders.h"

#include "../live/channel.h"
#include "eventhead.h"
#include "wscontrol.h"
#include "wsevent.h"

#include <stdlib.h>

static bool keep_alive(sr_websocket *ws, const sr_wscontrol *c)
{
    free(ws->alive);
    ws->alive = NULL;
    if (!c->content.at) {
        sr_wscarrier_schedule(ws);
        return true;
    }
    if (!(ws->alive = malloc(sizeof *ws->alive + c->content.len)))
        return false;
    *ws->alive = (sr_wsalive){.seconds = c->timeout,
                              .due = sr_live_second(ws->all->live) + c->timeout,
                              .interval = c->interval,
                              .kind = c->message,
                              .len = c->content.len};
    if (c->content.len)
        memcpy(ws->alive->content, c->content.at, c->content.len);
    sr_wscarrier_schedule(ws);
    return true;
}

/* NULL, or what is wrong; likewise of the others. */
static const char *subscribe(sr_websocket *ws, const sr_wscontrol *c)
{
    sr_wanted wanted = {c->channel, c->prev_id, false, false};
    for (unsigned i = 0; i < c->n_filters; i++) {
        if (!sr_bytes_equal(c->filters[i], SR_BYTES("skip-self")))
            return "has a filter other than skip-self";
        wanted.skips_self = true;
    }
    sr_subscribed done = sr_subscribe(ws->all->live, &ws->subscriber, &wanted);
    if (done == SR_SUBSCRIBED_LATE)
        ws->late = true;
    return done == SR_SUBSCRIBED_NOT ? "subscribes to too much" : NULL;
}

static const char *control(sr_websocket *ws, sr_bytes json)
{
    sr_wscontrol c;
    const char *why;
    sr_buffer *text = &ws->all->text;
    sr_buffer_reset(text);
    if (!sr_buffer_reserve(text, json.len))
        return "needs too much memory";
    if (!sr_wscontrol_read(&c, json, text->data ? text->data : (char[1]){0}, &why))
        return why;
    switch (c.kind) {
    case SR_WSCONTROL_SUBSCRIBE:
        return subscribe(ws, &c);
    case SR_WSCONTROL_UNSUBSCRIBE:
        sr_unsubscribe(ws->all->live, &ws->subscriber, c.channel);
        return NULL;
    case SR_WSCONTROL_DETACH:
        ws->detached = true;
        sr_websocket_forget_events(ws);
        return NULL;
    case SR_WSCONTROL_KEEP_ALIVE:
        return keep_alive(ws, &c) ? NULL : "needs too much memory";
    case SR_WSCONTROL_SET_META:
        return sr_eventhead_meta(&ws->meta, c.name, c.content.at ? c.content : sr_bytes_of("", 0))
                   ? NULL
                   : "sets an invalid meta field, or too many";
    case SR_WSCONTROL_OTHER:
        return NULL;
    }
    return NULL;
}

static bool begins_with(sr_bytes s, const char *at, size_t len)
{
    return s.len >= len && memcmp(s.at, at, len) == 0;
}

/* Appends a message for the client, or obeys what it says to the edge. NULL, or what is wrong. */
static const char *message(sr_websocket *ws, const sr_wsevent *event, sr_buffer *out)
{
    sr_bytes content = event->content;
    bool text = event->kind == SR_WSEVENT_TEXT;
    if (ws->grip && text && begins_with(content, "c:", 2))
        return control(ws, sr_bytes_of(content.at + 2, content.len - 2));
    if (ws->grip && !begins_with(content, ws->message_prefix, ws->prefix))
        return NULL; /* as in Pushpin */
    if (ws->grip)
        content = sr_bytes_of(content.at + ws->prefix, content.len - ws->prefix);
    if (text && !sr_is_utf8(content))
        return "has a text that is not UTF-8";
    ws->carrier->messages++;
    return sr_wsframe_add(out, text ? SR_WSFRAME_TEXT : SR_WSFRAME_BINARY, content) ? NULL
                                                                                    : "needs too much memory";
}

static const char *ping_or_pong(const sr_wsevent *event, sr_buffer *out)
{
    if (event->content.len > SR_WSFRAME_CONTROL_MAX)
        return "has a PING or PONG of more than 125 bytes";
    sr_wsframe_kind kind = event->kind == SR_WSEVENT_PING ? SR_WSFRAME_PING : SR_WSFRAME_PONG;
    return sr_wsframe_add(out, kind, event->content) ? NULL : "needs too much memory";
}

static const char *close_event(const sr_wsevent *event, unsigned *code, sr_bytes *reason)
{
    const unsigned char *at = (const unsigned char *)event->content.at;
    *code = SR_CLOSE_NONE;
    *reason = sr_bytes_of("", 0);
    if (!event->content.len)
        return NULL;
    *code = event->content.len < 2 ? 0 : (unsigned)(at[0] << 8 | at[1]);
    if (!sr_wsframe_code(*code))
        return "closes with a code that must not be sent";
    *reason = sr_bytes_of(event->content.at + 2, event->content.len - 2);
    return reason->len > SR_WSFRAME_CONTROL_MAX - 2 || !sr_is_utf8(*reason) ? "closes for an invalid reason"
                                                                            : NULL;
}

void sr_wsorders(sr_websocket *ws, sr_bytes in)
{
    sr_buffer *out = &ws->all->out;
    sr_wsevent event;
    sr_wsevent_result r;
    const char *wrong = NULL;
    unsigned code = 0;
    sr_bytes reason = {"", 0};
    bool closes = false, leaves = false;
    unsigned n = 0;
    sr_buffer_reset(out);
    while (!wrong && !closes && !leaves && (r = sr_wsevent_next(&in, &event)) != SR_WSEVENT_END) {
        if (r == SR_WSEVENT_BAD) {
            wrong = "has no events as the content type says";
            break;
        }
        if (++n > SR_WEBSOCKET_ANSWERS_MAX) {
            wrong = "has more than 50000 events";
            break;
        }
        switch (event.kind) {
        case SR_WSEVENT_OPEN:
            wrong = "has an OPEN that is not the first";
            break;
        case SR_WSEVENT_TEXT:
        case SR_WSEVENT_BINARY:
            wrong = message(ws, &event, out);
            break;
        case SR_WSEVENT_PING:
        case SR_WSEVENT_PONG:
            wrong = ping_or_pong(&event, out);
            break;
        case SR_WSEVENT_CLOSE:
            wrong = close_event(&event, &code, &reason);
            closes = !wrong;
            break;
        case SR_WSEVENT_DISCONNECT:
            leaves = true;
            break;
        }
    }
    if (wrong) {
        sr_websocket_invalid(ws, wrong);
        return;
    }
    if (ws->state != SR_WEBSOCKET_OPEN || (sr_buffer_len(out) && !sr_wscarrier_put(ws, sr_buffer_bytes(out))))
        return;
    if (sr_buffer_len(out) && ws->alive && !ws->alive->interval)
        ws->alive->due = sr_live_second(ws->all->live) + ws->alive->seconds;
    if (leaves)
        sr_wscarrier_drop(ws);
    else if (ws->late) /* it has missed something, and comes again */
        sr_wscarrier_close(ws, SR_CLOSE_RESTART, sr_bytes_of("", 0));
    else if (closes)
        sr_wscarrier_close(ws, code, reason);
    else if (ws->closed && !sr_buffer_len(&ws->events)) /* it was told, and has nothing to say */
        sr_wscarrier_close(ws, ws->code, sr_bytes_of("", 0));
}
