#include "wsmove.h"

#include "../live/move.h"

#include <stdlib.h>

/* Of a WebSocket; then head, meta, and what keeps it alive. */
typedef struct moved {
    uint32_t head, meta, alive; /* bytes of each */
    uint32_t heard, pinged, second, messages;
    uint32_t alive_seconds, alive_due, alive_interval, alive_kind;
    uint8_t pings, grip, detached, has_alive, prefix;
    char message_prefix[SR_WEBSOCKET_PREFIX_MAX];
} moved;

static bool ready(const sr_websocket *ws)
{
    return ws->state == SR_WEBSOCKET_OPEN && !ws->streams && !ws->errand && !ws->reply && !ws->paused &&
           !ws->closed && !ws->told && !sr_buffer_len(&ws->events) && !sr_buffer_len(&ws->early) &&
           sr_wsframe_idle(&ws->frames) && sr_move_quiet(&ws->subscriber);
}

bool sr_wsmove_pack(const sr_websocket *ws, sr_buffer *out)
{
    const sr_wsalive *alive = ws->alive;
    moved m = {.head = (uint32_t)sr_buffer_len(&ws->head),
               .meta = (uint32_t)sr_buffer_len(&ws->meta),
               .heard = ws->heard,
               .pinged = ws->pinged,
               .second = ws->second,
               .messages = ws->messages,
               .pings = ws->pings,
               .grip = ws->grip,
               .detached = ws->detached,
               .has_alive = alive != NULL,
               .prefix = ws->prefix};
    if (!ready(ws))
        return false;
    memcpy(m.message_prefix, ws->message_prefix, sizeof m.message_prefix);
    if (alive) {
        m.alive = (uint32_t)alive->len;
        m.alive_seconds = alive->seconds;
        m.alive_due = alive->due;
        m.alive_interval = alive->interval;
        m.alive_kind = alive->kind;
    }
    return sr_move_pack_exchange(ws->all->engine, ws->carrier, out) && sr_buffer_add(out, &m, sizeof m) &&
           sr_buffer_add_bytes(out, sr_buffer_bytes(&ws->head)) &&
           sr_buffer_add_bytes(out, sr_buffer_bytes(&ws->meta)) &&
           (!alive || sr_buffer_add(out, alive->content, alive->len)) &&
           sr_move_pack_subscriptions(&ws->subscriber, out);
}

static bool has_alive(sr_websocket *ws, const moved *m, sr_bytes content)
{
    if (!m->has_alive)
        return true;
    if (!(ws->alive = malloc(sizeof *ws->alive + content.len)))
        return false;
    *ws->alive = (sr_wsalive){.seconds = m->alive_seconds,
                              .due = m->alive_due,
                              .interval = m->alive_interval,
                              .kind = (sr_wsframe_kind)m->alive_kind,
                              .len = content.len};
    if (content.len)
        memcpy(ws->alive->content, content.at, content.len);
    return true;
}

bool sr_wsmove_unpack(sr_websocket *ws, sr_bytes *packed)
{
    sr_bytes head, meta, alive;
    moved m;
    if (!sr_move_cut_struct(packed, &m, sizeof m) || !sr_move_cut(packed, m.head, &head) ||
        !sr_move_cut(packed, m.meta, &meta) || !sr_move_cut(packed, m.alive, &alive) ||
        m.prefix > SR_WEBSOCKET_PREFIX_MAX)
        return false;
    ws->heard = m.heard;
    ws->pinged = m.pinged;
    ws->second = m.second;
    ws->messages = m.messages;
    ws->pings = m.pings;
    ws->grip = m.grip;
    ws->detached = m.detached;
    ws->prefix = m.prefix;
    memcpy(ws->message_prefix, m.message_prefix, sizeof ws->message_prefix);
    return sr_buffer_add_bytes(&ws->head, head) && sr_buffer_add_bytes(&ws->meta, meta) &&
           has_alive(ws, &m, alive) && sr_move_unpack_subscriptions(ws->all->live, &ws->subscriber, packed);
}
