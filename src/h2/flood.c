#ifdef SR_HTTP2

#include "flood.h"

#include "../conn/trouble.h"

enum {
    PRIORITY_UPDATE = 0x10, /* RFC 9218; older versions of nghttp2 do not know it */
    OVERHEAD = 32,          /* of a field, as SETTINGS_MAX_HEADER_LIST_SIZE counts it */
    FAR = 4,                /* times a head may be, to be answered with 431 */
    KIB = 1024,
    EACH = 10,          /* ms, brings back 1 */
    COST_SETTINGS = 10, /* each may touch all streams */
    COST_ERROR = 4,     /* a request and its reset, or more of them that a reset makes possible */
    COST_ANSWERED = 2,  /* a frame that is to be answered, or ends what was begun */
    COST_FRAME = 1,
};

/* HEADERS and CONTINUATION have limits of their own. */
static const struct {
    uint8_t cost, what;
} PRICES[] = {
    [NGHTTP2_DATA] = {COST_FRAME, SR_FLOOD_EMPTY},
    [NGHTTP2_HEADERS] = {0, SR_FLOOD_HEAD},
    [NGHTTP2_PRIORITY] = {COST_FRAME, SR_FLOOD_PRIORITY},
    [NGHTTP2_RST_STREAM] = {COST_ANSWERED, SR_FLOOD_RESETS},
    [NGHTTP2_SETTINGS] = {COST_SETTINGS, SR_FLOOD_SETTINGS},
    [NGHTTP2_PUSH_PROMISE] = {COST_FRAME, SR_FLOOD_OTHER},
    [NGHTTP2_PING] = {COST_ANSWERED, SR_FLOOD_PING},
    [NGHTTP2_GOAWAY] = {COST_ANSWERED, SR_FLOOD_OTHER},
    [NGHTTP2_WINDOW_UPDATE] = {COST_FRAME, SR_FLOOD_WINDOW},
    [NGHTTP2_CONTINUATION] = {0, SR_FLOOD_CONTINUATION},
};

void sr_flood_begin(sr_session *s)
{
    s->credit = SR_FLOOD_CREDIT;
    s->credit_at = s->engine->now;
    sr_link_init(&s->run_on);
}

static bool stop(sr_session *s, sr_flood what)
{
    if (s->over)
        return false;
    s->over = true;
    s->conn->why = SR_CLOSED_REFUSED;
    sr_trouble_flood(s->engine, s->conn, what, true);
    nghttp2_session_terminate_session(s->ng, NGHTTP2_ENHANCE_YOUR_CALM);
    sr_session_due(s);
    return false;
}

static bool spend(sr_session *s, uint32_t cost, sr_flood what)
{
    int64_t back = (s->engine->now - s->credit_at) / (EACH * SR_MILLISECOND);
    if (back > 0) {
        s->credit_at += back * EACH * SR_MILLISECOND;
        sr_flood_earn(s, back < SR_FLOOD_CREDIT ? (uint32_t)back : SR_FLOOD_CREDIT);
    }
    if (s->credit < cost)
        return stop(s, what);
    s->credit -= cost;
    return true;
}

/* Bytes of a header block, coded or not, above which it is not read on. */
static uint64_t block_max(const sr_session *s)
{
    return FAR * (uint64_t)s->engine->config.request.head + SR_FRAME_MAX;
}

uint32_t sr_flood_pieces(const sr_session *s)
{
    return SR_FLOOD_PIECES_MIN + (uint32_t)(block_max(s) / SR_FRAME_MAX);
}

static bool block(sr_session *s, const sr_framehead *f)
{
    if (f->type == NGHTTP2_HEADERS)
        s->pieces = s->coded = s->decoded = 0;
    else if (++s->pieces > sr_flood_pieces(s))
        return stop(s, SR_FLOOD_CONTINUATION);
    s->coded += f->len;
    return s->coded <= block_max(s) || stop(s, SR_FLOOD_HEAD);
}

bool sr_flood_frame(sr_session *s, const sr_framehead *f)
{
    uint8_t type = f->type, flags = f->flags;
    if (type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION)
        return block(s, f);
    if (type == NGHTTP2_DATA) {
        uint32_t padding =
            flags & NGHTTP2_FLAG_PADDED && f->payload.len ? (unsigned char)*f->payload.at + 1u : 0;
        sr_flood_earn(s, f->len / KIB);
        if (f->len > padding || flags & NGHTTP2_FLAG_END_STREAM)
            return true;
    }
    if (type == NGHTTP2_RST_STREAM && sr_cidrs_have(&s->engine->config.trusted, &s->conn->peer))
        return true; /* a proxy speaks for many clients, who may give up together */
    if (type == PRIORITY_UPDATE)
        return spend(s, COST_FRAME, SR_FLOOD_PRIORITY);
    if (type >= sizeof PRICES / sizeof *PRICES)
        return spend(s, COST_FRAME, SR_FLOOD_OTHER);
    if ((type == NGHTTP2_SETTINGS || type == NGHTTP2_PING) && flags & NGHTTP2_FLAG_ACK)
        return spend(s, COST_FRAME, SR_FLOOD_OTHER);
    return spend(s, PRICES[type].cost, (sr_flood)PRICES[type].what);
}

bool sr_flood_field(sr_session *s, size_t name, size_t value)
{
    uint32_t bytes = (uint32_t)(name + value + OVERHEAD);
    s->decoded += bytes;
    s->decoding += bytes;
    return s->decoded <= block_max(s) || stop(s, SR_FLOOD_HEAD);
}

void sr_flood_reset(sr_session *s, uint32_t error)
{
    switch (error) {
    case NGHTTP2_REFUSED_STREAM:
        spend(s, COST_FRAME, SR_FLOOD_STREAMS);
        break;
    case NGHTTP2_PROTOCOL_ERROR:
    case NGHTTP2_FLOW_CONTROL_ERROR:
    case NGHTTP2_STREAM_CLOSED:
    case NGHTTP2_FRAME_SIZE_ERROR:
    case NGHTTP2_COMPRESSION_ERROR:
        spend(s, COST_ERROR, SR_FLOOD_ERRORS);
        break;
    default: /* the application has failed, or nobody wants the rest of a body */
        break;
    }
}

void sr_flood_unread(sr_session *s)
{
    stop(s, SR_FLOOD_UNREAD);
}

static bool refuse(sr_session *s)
{
    sr_trouble_flood(s->engine, s->conn, SR_FLOOD_STREAMS, false);
    return false;
}

/* nghttp2 sees to streams that are open. */
bool sr_flood_room(sr_session *s)
{
    uint32_t run_on = 0;
    for (const sr_link *l = s->run_on.next; l != &s->run_on; l = l->next)
        run_on++;
    /*
     * streams that have ended for the client, whose application has not: as many more, as others may be
     * opened in their place at once
     */
    return (s->n_streams - s->n_detached + run_on < SR_FLOOD_STREAMS_MAX &&
            s->n_streams + run_on < 2 * SR_FLOOD_STREAMS_MAX) ||
           refuse(s);
}

bool sr_flood_keeps(sr_session *s, size_t head)
{
    return !s->heads || s->heads + head <= SR_FLOOD_HEADS_MAX || refuse(s);
}

#endif
