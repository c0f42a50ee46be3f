#include "wsevent.h"

#include "../http/token.h"

#include <stdio.h>

enum { DIGITS_MAX = 8 };

static const sr_bytes names[] = {
    [SR_WSEVENT_OPEN] = {"OPEN", 4},
    [SR_WSEVENT_TEXT] = {"TEXT", 4},
    [SR_WSEVENT_BINARY] = {"BINARY", 6},
    [SR_WSEVENT_PING] = {"PING", 4},
    [SR_WSEVENT_PONG] = {"PONG", 4},
    [SR_WSEVENT_CLOSE] = {"CLOSE", 5},
    [SR_WSEVENT_DISCONNECT] = {"DISCONNECT", 10},
};
enum { KINDS = sizeof names / sizeof *names };

static bool crlf(sr_bytes *in)
{
    if (in->len < 2 || in->at[0] != '\r' || in->at[1] != '\n')
        return false;
    *in = sr_bytes_of(in->at + 2, in->len - 2);
    return true;
}

static bool kind(sr_bytes *in, sr_wsevent *event)
{
    size_t n = 0;
    while (n < in->len && in->at[n] >= 'A' && in->at[n] <= 'Z')
        n++;
    for (unsigned i = 0; i < KINDS; i++)
        if (sr_bytes_equal(names[i], sr_bytes_of(in->at, n))) {
            event->kind = (sr_wsevent_kind)i;
            *in = sr_bytes_of(in->at + n, in->len - n);
            return true;
        }
    return false;
}

static bool length(sr_bytes *in, size_t *len)
{
    size_t n = 0;
    *len = 0;
    for (int digit; n < in->len && (digit = sr_hex_value((unsigned char)in->at[n])) >= 0; n++)
        *len = n < DIGITS_MAX ? *len << 4 | (unsigned)digit : *len;
    *in = sr_bytes_of(in->at + n, in->len - n);
    return n > 0 && n <= DIGITS_MAX && crlf(in) && *len <= in->len;
}

sr_wsevent_result sr_wsevent_next(sr_bytes *in, sr_wsevent *event)
{
    size_t len;
    event->content = sr_bytes_of("", 0);
    if (!in->len)
        return SR_WSEVENT_END;
    if (!kind(in, event))
        return SR_WSEVENT_BAD;
    if (crlf(in))
        return SR_WSEVENT_NEXT;
    if (!in->len || *in->at != ' ')
        return SR_WSEVENT_BAD;
    *in = sr_bytes_of(in->at + 1, in->len - 1);
    if (!length(in, &len))
        return SR_WSEVENT_BAD;
    event->content = sr_bytes_of(in->at, len);
    *in = sr_bytes_of(in->at + len, in->len - len);
    return crlf(in) ? SR_WSEVENT_NEXT : SR_WSEVENT_BAD;
}

size_t sr_wsevent_bytes(size_t content)
{
    return sizeof "DISCONNECT \r\n\r\n" - 1 + DIGITS_MAX + content;
}

bool sr_wsevent_add(sr_buffer *out, sr_wsevent_kind kind, sr_bytes content)
{
    bool message = kind == SR_WSEVENT_TEXT || kind == SR_WSEVENT_BINARY;
    char head[32];
    if (!sr_buffer_reserve(out, sr_wsevent_bytes(content.len)))
        return false;
    sr_buffer_add_bytes(out, names[kind]);
    if (!message && !content.len)
        return sr_buffer_add(out, "\r\n", 2);
    int n = snprintf(head, sizeof head, " %zx\r\n", content.len);
    return sr_buffer_add(out, head, (size_t)n) && sr_buffer_add_bytes(out, content) &&
           sr_buffer_add(out, "\r\n", 2);
}

bool sr_wsevent_type(sr_bytes content_type)
{
    const char *end = memchr(content_type.at ? content_type.at : "", ';', content_type.len);
    if (end)
        content_type.len = (size_t)(end - content_type.at);
    return sr_bytes_equal_nocase(sr_trim(content_type), SR_BYTES(SR_WSEVENT_TYPE));
}
