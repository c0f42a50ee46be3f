#include "grip.h"

#include "sirius.h"

#include "http/grip.h"
#include "http/token.h"

sirius_grip *sirius_grip_new(sr_bytes channel)
{
    sirius_grip *g = calloc(1, sizeof *g + channel.len);
    if (g && channel.len)
        memcpy(g->channel, channel.at, channel.len);
    if (g)
        g->channel_len = channel.len;
    return g;
}

void sirius_grip_free(sirius_grip *g)
{
    if (!g)
        return;
    sr_buffer_free(&g->fields);
    sr_buffer_free(&g->others);
    free(g);
}

static bool is(sr_bytes name, sr_bytes other)
{
    return sr_bytes_equal_nocase(name, other);
}

/* A field of a stream whose value holds for the application's bytes alone, not with what is published. */
static bool of_bytes(sr_bytes name)
{
    return is(name, SR_BYTES("content-md5")) || is(name, SR_BYTES("content-digest")) ||
           is(name, SR_BYTES("repr-digest")) || is(name, SR_BYTES("digest"));
}

/* Whether the value of Grip-Channel begins with the only channel that is held. */
static bool names(const sirius_grip *g, sr_bytes value)
{
    return value.len > g->channel_len && memcmp(value.at, g->channel, g->channel_len) == 0 &&
           value.at[g->channel_len] == ';';
}

static bool concerns(const sirius_grip *g, sr_bytes head)
{
    sr_bytes name, value;
    while (sr_response_next(&head, &name, &value))
        if (g->channel_len ? is(name, SR_BYTES("grip-channel")) && names(g, value) : sr_grip_is(name))
            return true;
    return false;
}

/* False: no memory. */
static bool split(sirius_grip *g, sr_bytes head)
{
    sr_bytes name, value;
    bool ok = true;
    sr_buffer_reset(&g->fields);
    sr_buffer_reset(&g->others);
    while (ok && sr_response_next(&head, &name, &value))
        ok = sr_response_line(sr_grip_is(name) ? &g->fields : &g->others, name, value);
    return ok;
}

/* Of a response that what is published is to continue. NULL, or why that is not possible. */
static const char *stream(sirius *s)
{
    sirius_grip *g = s->grip;
    sr_bytes head = sr_buffer_bytes(&s->head), name, value;
    if (s->turn.wire.response.framing == SR_FRAMING_NONE)
        return "Grip-Hold: stream comes with a status that has no body";
    sr_buffer_reset(&g->others);
    while (sr_response_next(&head, &name, &value)) {
        if (is(name, SR_BYTES("content-encoding")) && !is(sr_trim(value), SR_BYTES("identity")))
            return "Grip-Hold: stream comes with Content-Encoding: do not compress it, as what is "
                   "published is not";
        if (!of_bytes(name) && !sr_response_line(&g->others, name, value))
            return "out of memory";
    }
    sr_buffer whole = s->head;
    s->head = g->others;
    g->others = whole;
    return NULL;
}

const char *sirius_grip_take(sirius *s)
{
    sirius_grip *g = s->grip;
    const sr_response *r = &s->turn.wire.response;
    sr_grip said;
    if (!concerns(g, sr_buffer_bytes(&s->head)))
        return NULL;
    if (!split(g, sr_buffer_bytes(&s->head)))
        return "out of memory";
    sr_buffer head = s->head; /* its memory serves the next response */
    s->head = g->others;
    g->others = head;
    sr_bytes lines = sr_buffer_bytes(&g->fields);
    const char *why = sr_grip_read(lines, &said);
    if (why || !said.hold || r->is_head)
        return why;
    if (said.hold == SR_GRIP_STREAM && (why = stream(s)))
        return why;
    sr_worker_hold(&s->worker, lines);
    s->turn.wire.flags |= SR_REPLY_STAYS;
    return NULL;
}
