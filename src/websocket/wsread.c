#include "wsread.h"

#include "../conn/trouble.h"
#include "../live/channel.h"
#include "wsevent.h"

#include <errno.h>

/* Of one step; then others have their turn */
enum {
    READS = 4,
    BEGINNING = 16 * 1024, /* bytes of the first read: tiny frames cost most */
    FRAMES = 256,          /* then there is no other read */
};

/*
 * Sends what answers the pings that were read. A write for each would be dear. False: it is over for the
 * client.
 */
static bool send_pongs(sr_websocket *ws)
{
    sr_buffer *pongs = &ws->all->pongs;
    bool ok = !sr_buffer_len(pongs) || sr_wscarrier_put(ws, sr_buffer_bytes(pongs));
    sr_buffer_reset(pongs);
    return ok;
}

static bool fail(sr_websocket *ws, unsigned code, const char *reason)
{
    if (send_pongs(ws))
        sr_wscarrier_fail(ws, code, sr_bytes_of(reason, strlen(reason)));
    return false;
}

/* --websocket-rate, of a client that may send as many at once. */
static bool too_many(sr_websocket *ws)
{
    uint32_t most = ws->all->engine->config.websocket_rate, now = sr_live_second(ws->all->live);
    if (!most)
        return false;
    if (ws->second != now) {
        ws->second = now;
        ws->messages = 0;
    }
    return ++ws->messages > most;
}

static bool add(sr_websocket *ws, sr_wsevent_kind kind, sr_bytes bytes)
{
    if (ws->detached || ws->told)
        return true;
    if (!sr_wsevent_add(&ws->events, kind, bytes))
        return fail(ws, SR_CLOSE_ERROR, "no memory");
    ws->n_events++;
    sr_websocket_ask(ws);
    return true;
}

static bool pong(sr_websocket *ws, sr_bytes bytes)
{
    return sr_wsframe_add(&ws->all->pongs, SR_WSFRAME_PONG, bytes) || fail(ws, SR_CLOSE_ERROR, "no memory");
}

/*
 * The client closes: the application is told, and CLOSE is sent when it has answered, behind what it has to
 * say.
 */
static bool closed(sr_websocket *ws)
{
    const sr_wsframe *f = &ws->frames;
    unsigned char code[2 + SR_WSFRAME_CONTROL_MAX] = {(unsigned char)(f->code >> 8), (unsigned char)f->code};
    bool has_code = f->code != SR_CLOSE_NONE;
    ws->closed = true;
    ws->code = f->code;
    if (f->bytes.len)
        memcpy(code + 2, f->bytes.at, f->bytes.len);
    bool tells = ws->accepted && !ws->detached && !ws->told;
    size_t before = sr_buffer_len(&ws->events);
    if (!add(ws, SR_WSEVENT_CLOSE, sr_bytes_of((char *)code, has_code ? 2 + f->bytes.len : 0)))
        return false;
    ws->told = ws->told || tells;
    if (tells)
        ws->end_at = before;
    if (ws->state == SR_WEBSOCKET_CLOSING) {
        sr_wscarrier_finish(ws);
        return false;
    }
    return tells || sr_wscarrier_close(ws, ws->code, sr_bytes_of("", 0));
}

static bool message(sr_websocket *ws)
{
    const sr_wsframe *f = &ws->frames;
    if (f->kind == SR_WSFRAME_CLOSE)
        return send_pongs(ws) && closed(ws);
    if (too_many(ws))
        return fail(ws, SR_CLOSE_POLICY, "too many messages");
    if (ws->state == SR_WEBSOCKET_CLOSING || f->kind == SR_WSFRAME_PONG)
        return true;
    if (f->kind == SR_WSFRAME_PING)
        return pong(ws, f->bytes);
    return add(ws, f->kind == SR_WSFRAME_TEXT ? SR_WSEVENT_TEXT : SR_WSEVENT_BINARY, f->bytes);
}

static const char *reason_of(unsigned code)
{
    return code == SR_CLOSE_AWAY || code == SR_CLOSE_RESTART ? ""
           : code == SR_CLOSE_TOO_LARGE                      ? "the message is too large"
           : code == SR_CLOSE_UTF8                           ? "the text is not UTF-8"
           : code == SR_CLOSE_ERROR                          ? "no memory"
                                                             : "a frame is invalid";
}

void sr_wsread_broken(sr_websocket *ws)
{
    if (ws->carrier && ws->broken && !ws->errand && !sr_buffer_len(&ws->events))
        fail(ws, ws->broken, reason_of(ws->broken));
}

bool sr_wsread_bytes(sr_websocket *ws, char *at, size_t len)
{
    const size_t all_of_it = len;
    bool whole = false; /* a message has become so */
    size_t used, max = ws->all->engine->config.websocket_max;
    ws->heard = sr_live_second(ws->all->live);
    ws->pings = 0;
    sr_buffer_reset(&ws->all->pongs);
    while (len && !ws->closed && !ws->broken) {
        sr_wsframe_result r = sr_wsframe_feed(&ws->frames, at, len, max, &used);
        if (r == SR_WSFRAME_BAD) {
            ws->broken = ws->frames.code;
            break;
        }
        ws->all->engine->intake.frames++;
        if (r == SR_WSFRAME_MESSAGE && !message(ws))
            return false;
        whole = whole || (r == SR_WSFRAME_MESSAGE && ws->frames.kind < SR_WSFRAME_CLOSE);
        at += used;
        len -= used;
    }
    if (ws->broken && ws->state == SR_WEBSOCKET_CLOSING) { /* it does not come to CLOSE */
        sr_wscarrier_finish(ws);
        return false;
    }
    if (sr_wsframe_idle(&ws->frames)) {
        ws->window = 0;
    } else if (!ws->window || whole) {
        ws->window = ws->heard;
        ws->got = 0;
        sr_wscarrier_schedule(ws);
    } else {
        ws->got += all_of_it;
    }
    sr_wsframe_forget(&ws->frames);
    if (!sr_websocket_count(ws)) {
        sr_websocket_forget_events(ws);
        return fail(ws, SR_CLOSE_LATER, "the server has too many messages");
    }
    if (!send_pongs(ws))
        return false;
    sr_wsread_broken(ws);
    return ws->carrier;
}

bool sr_wsread_full(const sr_websocket *ws)
{
    return ws->state == SR_WEBSOCKET_OPEN &&
           (ws->closed || ws->broken || ws->n_events >= SR_WEBSOCKET_TOLD_MAX ||
            sr_buffer_len(&ws->events) > ws->all->engine->config.websocket_max || sr_wscarrier_behind(ws));
}

/* Reads on in the next step, though no event of the socket tells that something is there. */
static void wait_for_turn(sr_websocket *ws)
{
    if (!sr_transport_holds(ws->carrier->conn->transport))
        return;
    ws->paused = true;
    sr_websocket_ask(ws);
}

void sr_wsread_socket(sr_websocket *ws)
{
    sr_engine *e = ws->all->engine;
    sr_conn *c = ws->carrier->conn;
    e->intake.frames = 0;
    for (int reads = 0;; reads++) {
        size_t most = reads ? SR_SCRATCH : BEGINNING;
        if (sr_wsread_full(ws) || (reads && c->out)) {
            ws->paused = true;
            break;
        }
        if (reads == READS || (reads && e->intake.frames > FRAMES)) {
            wait_for_turn(ws);
            break;
        }
        ssize_t n = sr_transport_read(c->transport, c->source.fd, e->intake.scratch, most);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n <= 0) {
            if (n < 0)
                sr_trouble_lost(e, errno);
            sr_wscarrier_gone(ws);
            return;
        }
        if (!sr_wsread_bytes(ws, e->intake.scratch, (size_t)n))
            return;
        if ((size_t)n < most && !sr_transport_holds(c->transport))
            break;
    }
    sr_wscarrier_watch(ws);
}

void sr_wsread_resume(sr_websocket *ws)
{
    if (!ws->carrier || !ws->paused || sr_wsread_full(ws))
        return;
    ws->paused = false;
    if (ws->streams)
        ws->carrier->protocol->more(ws->all->engine, ws->carrier);
    else if (sr_transport_holds(ws->carrier->conn->transport))
        sr_wsread_socket(ws);
    else
        sr_wscarrier_watch(ws);
}
