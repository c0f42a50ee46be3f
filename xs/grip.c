#include "grip.h"

#include "sirius.h"

#include "http/grip.h"
#include "http/token.h"

sirius_grip *sirius_grip_new(void)
{
    return calloc(1, sizeof(sirius_grip));
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

/* The next line of `head`, with its CRLF; *name is that of its field. */
static sr_bytes line(sr_bytes *head, sr_bytes *name)
{
    size_t len = (size_t)((const char *)memchr(head->at, '\n', head->len) - head->at) + 1;
    sr_bytes one = sr_bytes_of(head->at, len);
    *name = sr_bytes_of(one.at, (size_t)((const char *)memchr(one.at, ':', len) - one.at));
    *head = sr_bytes_of(head->at + len, head->len - len);
    return one;
}

/* False: no memory. */
static bool split(sirius_grip *g, sr_bytes head)
{
    sr_buffer_reset(&g->fields);
    sr_buffer_reset(&g->others);
    while (head.len) {
        sr_bytes name, one = line(&head, &name);
        if (!sr_buffer_add_bytes(sr_grip_is(name) ? &g->fields : &g->others, one))
            return false;
    }
    return true;
}

/* Of a response that what is published is to continue. NULL, or why that is not possible. */
static const char *stream(sirius *s)
{
    sirius_grip *g = s->grip;
    sr_bytes head = sr_bytes_of(sr_buffer_at(&s->head), sr_buffer_len(&s->head)), name;
    if (s->turn.wire.response.framing == SR_FRAMING_NONE)
        return "Grip-Hold: stream comes with a status that has no body";
    sr_buffer_reset(&g->others);
    while (head.len) {
        sr_bytes one = line(&head, &name);
        if (is(name, SR_BYTES("content-encoding")) &&
            !is(sr_trim(sr_bytes_of(name.at + name.len + 1, one.len - name.len - 3)), SR_BYTES("identity")))
            return "Grip-Hold: stream comes with Content-Encoding: do not compress it, as what is "
                   "published is not";
        if (!of_bytes(name) && !sr_buffer_add_bytes(&g->others, one))
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
    if (!split(g, sr_bytes_of(sr_buffer_at(&s->head), sr_buffer_len(&s->head))))
        return "out of memory";
    if (!sr_buffer_len(&g->fields))
        return NULL;
    sr_buffer head = s->head; /* its memory serves the next response */
    s->head = g->others;
    g->others = head;
    sr_bytes lines = sr_bytes_of(sr_buffer_at(&g->fields), sr_buffer_len(&g->fields));
    const char *why = sr_grip_read(lines, &said);
    if (why || !said.hold || r->is_head)
        return why;
    if (said.hold == SR_GRIP_STREAM && (why = stream(s)))
        return why;
    sr_worker_hold(&s->worker, lines);
    s->turn.wire.flags |= SR_REPLY_STAYS;
    return NULL;
}
