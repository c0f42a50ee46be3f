#include "text.h"

#include <stdio.h>

static size_t append(char out[SR_LINE_MAX], size_t len, sr_bytes s)
{
    size_t n = s.len < SR_LINE_MAX - len ? s.len : SR_LINE_MAX - len;
    memcpy(out + len, s.at, n);
    return len + n;
}

size_t sr_text_request_line(const sr_request *r, const char *base, char out[SR_LINE_MAX])
{
    size_t len = append(out, 0, sr_span_in(base, r->method));
    len = append(out, len, SR_BYTES(" "));
    return append(out, len, sr_span_in(base, r->target));
}

size_t sr_text_line(const sr_edge *ed, uint32_t slot, char out[SR_TEXT_LINE_MAX])
{
    const sr_slot *s = sr_queue_at(&ed->queue, slot);
    const sr_buffer *kept = &ed->entries[slot].line;
    sr_row_request text = {0};
    if (!(s->files & SR_FILE_REQUEST)) {
        const sr_request *r = (const sr_request *)(const void *)s->data;
        text.line_len = (uint32_t)sr_text_request_line(r, s->data + s->parse, (char *)text.line);
    } else if (kept->data) {
        text.line_len =
            (uint32_t)append((char *)text.line, 0, sr_bytes_of(sr_buffer_at(kept), sr_buffer_len(kept)));
    }
    return sr_row_text(&text, out, SR_TEXT_LINE_MAX);
}

void sr_text_client(const sr_peer *peer, char out[SR_TEXT_CLIENT_MAX])
{
    char text[SR_PEER_TEXT_MAX];
    int len = (int)sr_peer_text(peer, text);
    if (peer->family)
        snprintf(out, SR_TEXT_CLIENT_MAX, peer->family == 6 ? "[%.*s]:%u" : "%.*s:%u", len, text,
                 (unsigned)peer->port);
    else
        snprintf(out, SR_TEXT_CLIENT_MAX, "unix");
}

const sr_request *sr_text_request(const sr_edge *ed, uint32_t slot, const char **base)
{
    const sr_slot *s = sr_queue_at(&ed->queue, slot);
    const sr_entry *en = &ed->entries[slot];
    bool copied = sr_buffer_len(&en->request) > 0;
    if (!copied && s->files & SR_FILE_REQUEST)
        return NULL;
    const char *data = copied ? sr_buffer_at(&en->request) : s->data;
    *base = data + s->parse;
    return (const sr_request *)(const void *)data;
}

sr_bytes sr_text_id(const sr_edge *ed, uint32_t slot, char made[SR_REQUEST_ID_MADE])
{
    const char *base;
    const sr_entry *en = &ed->entries[slot];
    const sr_request *r = en->trusted ? sr_text_request(ed, slot, &base) : NULL;
    sr_bytes id = r ? sr_traced_id(r, base) : (sr_bytes){NULL, 0};
    return id.at ? id : sr_traced_make(made, ed->engine->nonce, en->number);
}
