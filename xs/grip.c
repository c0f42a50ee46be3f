#include "grip.h"

#include "sirius.h"

#include "http/grip.h"

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

/* False: no memory. */
static bool split(sirius_grip *g, sr_bytes head)
{
    sr_buffer_reset(&g->fields);
    sr_buffer_reset(&g->others);
    while (head.len) {
        size_t len = (size_t)((const char *)memchr(head.at, '\n', head.len) - head.at) + 1;
        const char *colon = memchr(head.at, ':', len);
        bool is_grip = sr_grip_is(sr_bytes_of(head.at, (size_t)(colon - head.at)));
        if (!sr_buffer_add(is_grip ? &g->fields : &g->others, head.at, len))
            return false;
        head = sr_bytes_of(head.at + len, head.len - len);
    }
    return true;
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
    if (why || !said.hold || r->framing == SR_FRAMING_NONE)
        return why;
    sr_worker_hold(&s->worker, lines);
    s->turn.wire.flags |= SR_REPLY_STAYS;
    return NULL;
}
