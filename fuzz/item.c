/*
 * item: what workers and publishers hand in. The texts lie in the bytes, in order and without a gap, within
 * the limits.
 * Judges: src/share/item.c
 */
#include "share/item.h"

#include "fuzz.h"

static const char *follows(const char *at, sr_bytes text)
{
    MUST(text.at == at);
    return at + text.len;
}

FUZZ_TARGET(item)
{
    sr_item_view v;
    char *at = fuzz_copy(data, size);
    if (sr_item_read(sr_bytes_of(at, size), &v)) {
        const char *end = at + sizeof(sr_item);
        MUST(size <= SR_ITEM_PACKED_MAX && v.number && v.has);
        end = follows(end, v.channel);
        end = follows(end, v.id);
        end = follows(end, v.prev_id);
        end = follows(end, v.stream);
        end = follows(end, v.fields);
        end = follows(end, v.body);
        end = v.has & SR_ITEM_SAME ? end : follows(end, v.message);
        MUST(end == at + size);
        MUST(v.channel.len && v.channel.len <= SR_ITEM_CHANNEL_MAX);
        MUST(v.id.len <= SR_ITEM_ID_MAX && v.prev_id.len <= SR_ITEM_ID_MAX);
        MUST(!(v.has & SR_ITEM_RESPONSE) == !v.status);
        MUST(!(v.has & SR_ITEM_WS_CLOSE) == !v.code);
        MUST(!v.fields.len || memcmp(v.fields.at + v.fields.len - 2, "\r\n", 2) == 0);
    }
    free(at);
    return 0;
}
