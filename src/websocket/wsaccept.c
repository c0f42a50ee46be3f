#include "wsaccept.h"

#include "../conn/account.h"
#include "../conn/extra.h"
#include "../http/date.h"
#include "../http/grip.h"
#include "../http/token.h"
#include "../live/channel.h"
#include "eventhead.h"

static bool is(sr_bytes name, const char *other)
{
    return sr_bytes_equal_nocase(name, sr_bytes_of(other, strlen(other)));
}

static bool sets_meta(sr_bytes name, sr_bytes *meta)
{
    static const char prefix[] = "set-meta-";
    size_t len = sizeof prefix - 1;
    if (name.len <= len || !sr_bytes_equal_nocase(sr_bytes_of(name.at, len), sr_bytes_of(prefix, len)))
        return false;
    *meta = sr_bytes_of(name.at + len, name.len - len);
    return true;
}

/* Sec-WebSocket-Extensions: grip; message-prefix=... */
static void extension(sr_websocket *ws, sr_bytes value)
{
    static const char key[] = "message-prefix=";
    sr_bytes all = value, element;
    while (sr_list_next(&all, &element)) {
        const char *semicolon = memchr(element.at, ';', element.len);
        sr_bytes name =
            semicolon ? sr_trim(sr_bytes_of(element.at, (size_t)(semicolon - element.at))) : element;
        if (!is(name, "grip"))
            continue;
        ws->grip = true;
        memcpy(ws->message_prefix, "m:", ws->prefix = 2);
        if (!semicolon)
            continue;
        sr_bytes rest =
            sr_trim(sr_bytes_of(semicolon + 1, (size_t)(element.at + element.len - (semicolon + 1))));
        if (rest.len < sizeof key - 1 || memcmp(rest.at, key, sizeof key - 1) != 0)
            continue;
        rest = sr_bytes_of(rest.at + sizeof key - 1, rest.len - (sizeof key - 1));
        if (rest.len >= 2 && rest.at[0] == '"' && rest.at[rest.len - 1] == '"')
            rest = sr_bytes_of(rest.at + 1, rest.len - 2);
        if (rest.len <= SR_WEBSOCKET_PREFIX_MAX)
            memcpy(ws->message_prefix, rest.at, ws->prefix = (uint8_t)rest.len);
    }
}

const char *sr_wsaccept_fields(sr_websocket *ws)
{
    sr_bytes lines = sr_buffer_bytes(&ws->reply->fields), name, value, meta;
    while (sr_response_next(&lines, &name, &value)) {
        if (sets_meta(name, &meta) && !sr_eventhead_meta(&ws->meta, meta, sr_trim(value)))
            return "has an invalid Set-Meta field, or too many";
        if (ws->state == SR_WEBSOCKET_OPENING && is(name, "sec-websocket-extensions"))
            extension(ws, value);
    }
    return NULL;
}

/* Whether a field of the response to OPEN is for the client. */
static bool is_for_client(sr_bytes name)
{
    sr_bytes meta;
    return !sets_meta(name, &meta) && !is(name, "content-type") && !is(name, "content-length") &&
           !is(name, "upgrade") && !is(name, "connection") && !is(name, "transfer-encoding") &&
           !is(name, "keep-alive") && !is(name, "keep-alive-interval") &&
           !is(name, "content-bytes-accepted") && !is(name, "sec-websocket-accept") &&
           !is(name, "sec-websocket-extensions") && !sr_grip_is(name);
}

/* --- opening --- */

/* The fields for the client, as lines. */
static sr_response_error fields_for_client(const sr_websocket *ws, sr_buffer *out)
{
    sr_response r;
    sr_bytes lines = sr_buffer_bytes(&ws->reply->fields), name, value;
    sr_response_error err = sr_response_begin(&r, 200, false, false);
    while (!err && sr_response_next(&lines, &name, &value))
        if (is_for_client(name))
            err = sr_response_field(&r, out, name, sr_trim(value));
    return err;
}

/* HTTP/1.1: a response that a head of sr_protocol does not make, as it is neither final nor interim. */
static bool switched(sr_websocket *ws, sr_bytes fields)
{
    static const char begin[] =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    sr_engine *e = ws->all->engine;
    sr_exchange *x = ws->carrier;
    sr_buffer *out = &ws->all->out;
    const sr_head head = {101, fields, SR_LENGTH_UNKNOWN, SR_LENGTH_UNKNOWN, false};
    sr_response r;
    sr_buffer_reset(out);
    bool ok =
        sr_buffer_add(out, begin, sizeof begin - 1) &&
        sr_response_line(out, SR_BYTES("Sec-WebSocket-Accept"), sr_bytes_of(ws->accept, sizeof ws->accept)) &&
        !sr_response_begin(&r, 200, false, false) && !sr_extra_fields(e, x, &r, &head, out) &&
        (r.has_date || sr_response_line(out, SR_BYTES("Date"), sr_bytes_of(e->date, SR_DATE_LEN))) &&
        (r.has_server || !e->config.server.len ||
         sr_response_line(out, SR_BYTES("Server"), e->config.server)) &&
        sr_buffer_add(out, "\r\n", 2);
    if (!ok)
        return false;
    x->keep_alive = x->chunked = false;
    x->left = SR_LENGTH_UNKNOWN;
    sr_account_head(x, 101, sr_buffer_len(out));
    sr_wscarrier_put(ws, sr_buffer_bytes(out));
    return true;
}

/* False: it is over for the client. */
static bool answer_client(sr_websocket *ws)
{
    sr_engine *e = ws->all->engine;
    sr_exchange *x = ws->carrier;
    sr_buffer *text = &ws->all->text;
    sr_bytes made;
    sr_buffer_reset(text);
    bool ok = !fields_for_client(ws, text);
    if (ok && ws->streams) {
        const sr_head head = {101, sr_buffer_bytes(text), SR_LENGTH_UNKNOWN, SR_LENGTH_UNKNOWN, false};
        ok = !x->protocol->head(e, x, &head, &made);
    } else if (ok) {
        ok = switched(ws, sr_buffer_bytes(text));
    }
    if (!ok)
        sr_websocket_invalid(ws, "has an invalid field");
    return ok && ws->carrier;
}

bool sr_wsaccept(sr_websocket *ws)
{
    sr_live *live = ws->all->live;
    ws->carrier->is_own = true; /* the time that it is open is no latency */
    sr_exchange_hold(ws->carrier, ws->all->engine->now);
    if (!answer_client(ws))
        return false;
    ws->state = SR_WEBSOCKET_OPEN;
    ws->heard = sr_live_second(live);
    sr_subscriber_begin(live, &ws->subscriber, ws->carrier, ws->all->ops);
    sr_wscarrier_schedule(ws);
    return sr_wscarrier_watch(ws);
}
