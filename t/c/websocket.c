/* websocket: what is asked when a client has been behind; over a protocol that only keeps what it is given. */
#include "../../src/websocket/wscarrier.h"

#include "tap.h"

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

static const sr_protocol protocol = {.piece = piece, .output = output, .settle = settle};

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

int main(void)
{
    sr_conn conn = {.state = SR_CONN_STREAMS};
    sr_exchange x = {.conn = &conn, .protocol = &protocol};
    engine.row = &engine.no_row;
    engine.now = SR_SECOND;
    engine.config.hold_buffer = 5;
    sr_link_init(&engine.all);
    out = sr_output_new();
    sr_live *live = sr_live_new(&engine);
    sr_websockets *all = sr_websockets_new(&engine, live);
    sr_websocket ws = {.all = all, .carrier = &x, .state = SR_WEBSOCKET_OPEN, .streams = true};
    sr_link_init(&ws.asking);
    sr_wsframe_init(&ws.frames);
    late(all, &ws);
    sr_wsframe_free(&ws.frames);
    sr_websockets_free(all);
    sr_live_free(live);
    sr_output_free(out);
    return done_testing();
}
