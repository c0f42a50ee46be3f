/*
 * websocket: what is asked when a client has been behind, and how much is read in a turn; over a protocol
 * that only keeps what it is given.
 */
#include "../../src/websocket/wsanswer.h"

#include "../../src/live/channel.h"
#include "../../src/websocket/wsread.h"

#include "tap.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static sr_engine engine;
static sr_output *out;
static bool full;

static void piece(sr_engine *e, sr_exchange *x, sr_bytes body, bool last)
{
    (void)e, (void)x, (void)last;
    sr_buffer_add_bytes(&out->mem, body);
}

static sr_output *output(const sr_exchange *x)
{
    (void)x;
    return out;
}

static bool settle(sr_engine *e, sr_exchange *x)
{
    (void)e, (void)x;
    if (!full)
        sr_buffer_reset(&out->mem);
    return true;
}

/* A head with anything that is none is refused, as by HTTP/1.1 and 2. */
static sr_response_error head(sr_engine *e, sr_exchange *x, const sr_head *h, sr_bytes *made)
{
    (void)e, (void)x, (void)made;
    return h->fields.len ? SR_RESPONSE_BAD_NAME : SR_RESPONSE_OK;
}

static int ended;

static void end(sr_engine *e, sr_exchange *x)
{
    (void)e, (void)x;
    ended++;
}

static const sr_protocol protocol = {
    .head = head, .piece = piece, .output = output, .settle = settle, .end = end};

static void late(sr_websockets *all, sr_websocket *ws)
{
    full = true;
    ok(sr_wscarrier_send(ws, SR_WSFRAME_TEXT, SR_BYTES("0123456789")) && sr_wscarrier_behind(ws),
       "a client does not read");
    ok(sr_link_alone(&all->asking), "and the application is not asked");
    full = false;
    ok(sr_wscarrier_publish(ws, SR_WSFRAME_TEXT, SR_BYTES("x")) && !sr_wscarrier_behind(ws),
       "what is published takes along what was behind");
    ok(!sr_link_alone(&all->asking), "and then the application is asked for what waits");
    sr_link_remove(&ws->asking);
}

static int waits(int fd)
{
    int n = 0;
    return ioctl(fd, FIONREAD, &n) ? -1 : n;
}

static void turns(sr_websocket *ws)
{
    enum { BYTES = 60 * 1024 };
    static char sent[BYTES], scratch[SR_SCRATCH];
    const char ping[6] = {(char)0x89, (char)0x80};
    int pair[2], all;
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = ping[i % sizeof ping];
    engine.intake.scratch = scratch;
    if (!ok(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && !sr_loop_init(&engine.loop), "a socket"))
        return;
    ws->streams = false;
    ws->carrier->conn->source.fd = pair[0];
    all = (int)send(pair[1], sent, BYTES, 0);
    sr_wsread_socket(ws);
    int left = waits(pair[0]);
    ok(left > 0 && left < all, "of many pings, only some are answered in a turn: %d of %d bytes wait", left,
       all);
    ok(ws->carrier->conn->interest & EPOLLIN && !ws->paused, "and others in the next");
    for (int i = 0; i < 20 && waits(pair[0]) > 0; i++)
        sr_wsread_socket(ws);
    is_int(waits(pair[0]), 0, "up to the last");
    char frame[14] = {(char)0x82, (char)0xff, 0, 0, 0, 0, 0, 1};
    all = (int)(send(pair[1], frame, sizeof frame, 0) + send(pair[1], sent, BYTES, 0));
    sr_wsread_socket(ws);
    is_int(waits(pair[0]), 0, "a large message is read in one");
    sr_loop_free(&engine.loop);
    close(pair[0]);
    close(pair[1]);
}

static void refusals(sr_websocket *ws)
{
    sr_conn conn = {.state = SR_CONN_STREAMS};
    sr_exchange errand = {.conn = &conn, .protocol = &sr_wsanswer, .held = ws};
    sr_head h = {403, SR_BYTES("no field\r\n"), 2, 2, false};
    sr_bytes made;
    ws->state = SR_WEBSOCKET_OPENING;
    ok(sr_wsanswer.head(&engine, &errand, &h, &made) && !errand.status && ws->state == SR_WEBSOCKET_OPENING,
       "a response that is invalid has not answered the opening");
    h.status = 502;
    h.fields.len = 0;
    ok(!sr_wsanswer.head(&engine, &errand, &h, &made) && errand.status == 502 &&
           ws->state == SR_WEBSOCKET_REFUSED,
       "and another one does");
}

/*
 * The application answers OPEN when another edge is taking over, which has connections of these kinds only.
 */
static void opens(sr_websockets *all, uint32_t yields, bool stays, const char *what)
{
    static const char closing[] = "\x88\x02\x03\xf4"; /* 1012 */
    int pair[2];
    if (!ok(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && !sr_loop_init(&engine.loop), "a socket"))
        return;
    sr_conn conn = {.state = SR_CONN_HELD, .source = {.fd = pair[0]}};
    sr_exchange x = {.conn = &conn, .protocol = &protocol};
    sr_websocket ws = {.all = all, .carrier = &x};
    const sr_head h = {200, SR_BYTES("Content-Type: application/websocket-events\r\n"), 6, 6, false};
    sr_bytes made;
    x.held = &ws;
    sr_link_init(&ws.asking);
    sr_wsframe_init(&ws.frames);
    sr_errand_of(&ws.client, &x);
    ws.errand = sr_errand_new(&engine, &ws.client, &sr_wsanswer);
    ws.errand->held = &ws;
    engine.retiring = all->live->retiring = true;
    all->live->yields = yields;
    full = true;
    ended = 0;
    sr_buffer_reset(&out->mem);
    ok(!sr_wsanswer.head(&engine, ws.errand, &h, &made), "%s: a head", what);
    sr_wsanswer.piece(&engine, ws.errand, SR_BYTES("OPEN\r\n"), true);
    sr_wsanswer.end(&engine, ws.errand);
    sr_bytes sent = sr_buffer_bytes(&out->mem);
    bool closes = sent.len > 4 && memcmp(sent.at + sent.len - 4, closing, 4) == 0;
    ok(sent.len > 12 && memcmp(sent.at, "HTTP/1.1 101", 12) == 0, "%s: it opens", what);
    ok(closes != stays && ended != stays && (ws.state == SR_WEBSOCKET_OPEN) == stays, "%s: and %s", what,
       stays ? "stays" : "closes at once");
    if (ws.carrier)
        sr_wscarrier_over(&ws);
    sr_link_remove(&ws.asking);
    sr_buffer_free(&ws.events);
    sr_errand_forget(&ws.client);
    engine.retiring = all->live->retiring = full = false;
    sr_loop_free(&engine.loop);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    sr_conn conn = {.state = SR_CONN_STREAMS};
    sr_exchange x = {.conn = &conn, .protocol = &protocol};
    engine.row = &engine.no_row;
    engine.now = SR_SECOND;
    engine.config.hold_buffer = 5;
    engine.config.websocket_max = 1024 * 1024;
    sr_link_init(&engine.all);
    out = sr_output_new();
    sr_live *live = sr_live_new(&engine);
    sr_websockets *all = sr_websockets_new(&engine, live);
    sr_websocket ws = {.all = all, .carrier = &x, .state = SR_WEBSOCKET_OPEN, .streams = true};
    sr_link_init(&ws.asking);
    sr_wsframe_init(&ws.frames);
    sr_subscriber_begin(live, &ws.subscriber, &x, all->ops);
    late(all, &ws);
    turns(&ws);
    refusals(&ws);
    opens(all, UINT32_MAX, true, "a successor that takes over WebSockets");
    opens(all, 1U << SR_HELD_STREAM | 1U << SR_HELD_RESPONSE, false, "one that does not");
    sr_subscriber_end(live, &ws.subscriber);
    sr_wsframe_free(&ws.frames);
    sr_websockets_free(all);
    sr_live_free(live);
    sr_output_free(out);
    return done_testing();
}
