#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* explicit_bzero */
#endif
#include "keyset.h"

#include "../base/wipe.h"

bool sr_keyset_begin(sr_buffer *to)
{
    static const uint32_t layout = SR_KEYSET_LAYOUT;
    sr_buffer_reset(to);
    return sr_buffer_add(to, &layout, sizeof layout);
}

bool sr_keyset_add(sr_buffer *to, sr_keyset_kind kind, sr_bytes bytes)
{
    sr_keyset_item item = {kind, (uint32_t)bytes.len};
    if (sr_buffer_len(to) + sizeof item + bytes.len > SR_KEYSET_MAX)
        return false;
    size_t more = sizeof item + bytes.len;
    if (to->cap - to->end < more) { /* not by realloc, which would leave a copy of keys behind */
        sr_buffer larger = {0};
        if (!sr_buffer_reserve(&larger, 2 * (sr_buffer_len(to) + more)))
            return false;
        sr_buffer_add(&larger, sr_buffer_at(to), sr_buffer_len(to));
        sr_keyset_wipe(to);
        *to = larger;
    }
    sr_buffer_add(to, &item, sizeof item);
    return sr_buffer_add_bytes(to, bytes);
}

bool sr_keyset_next(sr_bytes run, size_t *at, sr_keyset_kind *kind, sr_bytes *bytes)
{
    sr_keyset_item item;
    uint32_t layout;
    if (*at == 0) {
        if (run.len < sizeof layout)
            return false;
        memcpy(&layout, run.at, sizeof layout);
        if (layout != SR_KEYSET_LAYOUT)
            return false;
        *at = sizeof layout;
    }
    if (*at == run.len)
        return false;
    size_t left = run.len - *at;
    if (left >= sizeof item)
        memcpy(&item, run.at + *at, sizeof item);
    if (left < sizeof item || left - sizeof item < item.len) {
        *at = 0;
        return false;
    }
    *kind = (sr_keyset_kind)item.kind;
    *bytes = sr_bytes_of(run.at + *at + sizeof item, item.len);
    *at += sizeof item + item.len;
    return true;
}

bool sr_keyset_copy(sr_buffer *to, sr_bytes run)
{
    sr_keyset_kind kind;
    sr_bytes item;
    bool copied = true;
    for (size_t at = 0; copied && sr_keyset_next(run, &at, &kind, &item);)
        copied = sr_keyset_add(to, kind, item);
    return copied;
}

void sr_keyset_wipe(sr_buffer *b)
{
    if (b->data)
        sr_wipe(b->data, b->cap);
    sr_buffer_free(b);
}
