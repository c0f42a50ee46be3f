#include "text.h"

#include <stdio.h>

size_t sr_text_line(const sr_edge *ed, uint32_t slot, char out[SR_TEXT_LINE_MAX])
{
    const sr_slot *s = sr_queue_at(&ed->queue, slot);
    const sr_entry *en = &ed->entries[slot];
    sr_bytes line = sr_bytes_of(en->line.data ? sr_buffer_at(&en->line) : "", sr_buffer_len(&en->line));
    sr_row_request text = {0};
    if (!(s->files & SR_FILE_REQUEST))
        line = sr_text_line_of((const sr_request *)(const void *)s->data, s->data + s->parse);
    text.line_len = (uint32_t)(line.len < SR_LINE_MAX ? line.len : SR_LINE_MAX);
    memcpy(text.line, line.at, text.line_len);
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
