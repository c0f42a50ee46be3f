#include "item.h"

#include "../http/token.h"

_Static_assert(sizeof(sr_item) == 48, "as lib/Sirius/Channel/Item.pm packs it");

/* The next text. Lengths were checked. */
static sr_bytes text(sr_bytes *left, uint32_t len)
{
    sr_bytes s = sr_bytes_of(left->at, len);
    left->at += len;
    left->len -= len;
    return s;
}

static bool is_one_of(unsigned has, unsigned bits)
{
    has &= bits;
    return (has & (has - 1)) == 0;
}

/*
 * Codes that a server may send in a close frame (RFC 6455 7.4 and its registry): 1005, 1006 and 1015 stand
 * for a frame without.
 */
static bool is_close_code(uint16_t code)
{
    return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
           (code >= 3000 && code <= 4999);
}

static bool are_fields(sr_bytes lines)
{
    while (lines.len) {
        const char *end = memchr(lines.at, '\r', lines.len);
        size_t len = end ? (size_t)(end - lines.at) : 0;
        const char *colon = len ? memchr(lines.at, ':', len) : NULL;
        size_t name = colon ? (size_t)(colon - lines.at) : 0;
        if (!colon || len + 2 > lines.len || end[1] != '\n' || !sr_is_token(sr_bytes_of(lines.at, name)) ||
            !sr_is_value(sr_bytes_of(colon + 1, len - name - 1)))
            return false;
        lines = sr_bytes_of(lines.at + len + 2, lines.len - len - 2);
    }
    return true;
}

/* Whether each part is complete, and no text belongs to none. */
static bool agrees(const sr_item *i)
{
    bool has_message = i->has & (SR_ITEM_TEXT | SR_ITEM_BINARY | SR_ITEM_WS_CLOSE);
    if (!i->has || i->has >= 2 * SR_ITEM_SAME || !is_one_of(i->has, SR_ITEM_STREAM | SR_ITEM_STREAM_CLOSE) ||
        !is_one_of(i->has, SR_ITEM_TEXT | SR_ITEM_BINARY | SR_ITEM_WS_CLOSE))
        return false;
    if ((i->stream && !(i->has & SR_ITEM_STREAM)) || (i->message && !has_message))
        return false;
    if (i->has & SR_ITEM_SAME &&
        (i->message || !(i->has & SR_ITEM_STREAM) || !(i->has & (SR_ITEM_TEXT | SR_ITEM_BINARY))))
        return false;
    if (i->has & SR_ITEM_RESPONSE ? i->status < 200 || i->status > 999 : i->status || i->fields || i->body)
        return false;
    if (i->has & SR_ITEM_WS_CLOSE)
        return is_close_code(i->code) && i->message <= SR_ITEM_REASON_MAX;
    return !i->code;
}

bool sr_item_read(sr_bytes packed, sr_item_view *out)
{
    sr_item i;
    if (packed.len < sizeof i || packed.len > SR_ITEM_PACKED_MAX)
        return false;
    memcpy(&i, packed.at, sizeof i);
    sr_bytes left = sr_bytes_of(packed.at + sizeof i, packed.len - sizeof i);
    uint64_t all = (uint64_t)i.channel + i.id + i.prev_id + i.stream + i.fields + i.body + i.message +
                   i.sender; /* no overflow */
    if (!i.number || all != left.len || !i.channel || i.channel > SR_ITEM_CHANNEL_MAX ||
        i.id > SR_ITEM_ID_MAX || i.prev_id > SR_ITEM_ID_MAX || i.sender > SR_ITEM_SENDER_MAX || !agrees(&i))
        return false;
    *out = (sr_item_view){.number = i.number, .status = i.status, .code = i.code, .has = i.has};
    out->channel = text(&left, i.channel);
    out->id = text(&left, i.id);
    out->prev_id = text(&left, i.prev_id);
    out->stream = text(&left, i.stream);
    out->fields = text(&left, i.fields);
    out->body = text(&left, i.body);
    out->message = i.has & SR_ITEM_SAME ? out->stream : text(&left, i.message);
    out->sender = text(&left, i.sender);
    return sr_is_value(out->channel) && are_fields(out->fields);
}
