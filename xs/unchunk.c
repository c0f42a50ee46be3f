#include "unchunk.h"

#include "http/token.h"

void unchunk_begin(unchunk *u, bool app_chunked)
{
    u->state = app_chunked ? UNCHUNK_TRYING : UNCHUNK_OFF;
    u->kept_len = 0;
    if (app_chunked)
        sr_chunked_init(&u->decoder);
}

static bool decode(unchunk *u, sr_bytes in, bool (*out)(void *arg, sr_bytes data), void *arg)
{
    while (in.len) {
        size_t used = 0;
        sr_bytes data = {0};
        sr_chunked_result r = sr_chunked_feed(&u->decoder, in, &used, &data);
        in = sr_bytes_of(in.at + used, in.len - used);
        if (r == SR_CHUNKED_BAD) {
            u->state = UNCHUNK_BAD;
            return false;
        }
        if (r == SR_CHUNKED_DATA && !out(arg, data))
            return false;
        if (r == SR_CHUNKED_DONE) {
            u->state = UNCHUNK_ENDED;
            return true;
        }
        if (r == SR_CHUNKED_MORE)
            return true;
    }
    return true;
}

/*
 * Whether the first bytes are a chunk-size line without extension. 1: yes; 0: no; -1: more bytes are needed.
 */
static int looks_chunked(const char *at, size_t len)
{
    size_t i = 0;
    while (i < len && i <= 16 && sr_hex_value((unsigned char)at[i]) >= 0)
        i++;
    if (i == len)
        return i > 16 ? 0 : -1;
    if (i == 0 || at[i] != '\r')
        return 0;
    return i + 1 == len ? -1 : at[i + 1] == '\n';
}

bool unchunk_feed(unchunk *u, sr_bytes in, bool (*out)(void *arg, sr_bytes data), void *arg)
{
    if (u->state == UNCHUNK_TRYING) {
        size_t room = sizeof u->kept - u->kept_len, n = in.len < room ? in.len : room;
        memcpy(u->kept + u->kept_len, in.at, n);
        int chunked = looks_chunked(u->kept, u->kept_len + n);
        if (chunked < 0) {
            u->kept_len = (uint8_t)(u->kept_len + n);
            return true;
        }
        sr_bytes kept = sr_bytes_of(u->kept, u->kept_len);
        u->state = chunked ? UNCHUNK_ON : UNCHUNK_OFF;
        if (kept.len && !(chunked ? decode(u, kept, out, arg) : out(arg, kept)))
            return false;
    }
    switch (u->state) {
    case UNCHUNK_OFF:
        return !in.len || out(arg, in);
    case UNCHUNK_ON:
        return decode(u, in, out, arg);
    case UNCHUNK_TRYING:
    case UNCHUNK_ENDED:
        return true;
    case UNCHUNK_BAD:
        break;
    }
    return false;
}

bool unchunk_end(unchunk *u, bool (*out)(void *arg, sr_bytes data), void *arg)
{
    if (u->state == UNCHUNK_TRYING && u->kept_len)
        return out(arg, sr_bytes_of(u->kept, u->kept_len));
    return u->state != UNCHUNK_ON && u->state != UNCHUNK_BAD;
}
