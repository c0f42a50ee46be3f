#include "text.h"

#include "../base/decimal.h"

static const char hex[] = "0123456789abcdef";

static inline bool printable(unsigned char c)
{
    return c >= 0x20 && c < 0x7f;
}

/*
 * Counts the bytes at the front that need no escape, eight at once: nearly all values are printable
 * throughout.
 */
static size_t clean(sr_bytes s)
{
    const uint64_t ones = 0x0101010101010101, high = ones * 0x80;
    size_t i = 0;
    for (; s.len - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, s.at + i, sizeof w);
        /* the three terms: above 0x7f, 0x7f itself, below 0x20 */
        if ((w | (w + ones) | (w - ones * 0x20)) & high)
            break;
    }
    while (i < s.len && printable((unsigned char)s.at[i]))
        i++;
    return i;
}

bool sr_logtext_add(sr_buffer *out, sr_bytes value)
{
    for (;;) {
        size_t n = clean(value);
        if (!sr_buffer_add(out, value.at, n))
            return false;
        if (n == value.len)
            return true;
        unsigned char c = (unsigned char)value.at[n];
        char escape[4] = {'\\', 'x', hex[c >> 4], hex[c & 15]};
        if (!sr_buffer_add(out, escape, sizeof escape))
            return false;
        value = sr_bytes_of(value.at + n + 1, value.len - n - 1);
    }
}

static inline bool continues(sr_bytes s, size_t i)
{
    return i < s.len && ((unsigned char)s.at[i] & 0xc0) == 0x80;
}

/* The length of the UTF-8 character at i. 0: it is invalid: overlong, a surrogate, or above U+10FFFF. */
static size_t utf8(sr_bytes s, size_t i)
{
    unsigned char c = (unsigned char)s.at[i];
    if (c < 0xc2 || c > 0xf4 || !continues(s, i + 1))
        return 0;
    if (c < 0xe0)
        return 2;
    unsigned char next = (unsigned char)s.at[i + 1];
    if (!continues(s, i + 2) || (c == 0xe0 && next < 0xa0) || (c == 0xed && next > 0x9f))
        return 0;
    if (c < 0xf0)
        return 3;
    if (!continues(s, i + 3) || (c == 0xf0 && next < 0x90) || (c == 0xf4 && next > 0x8f))
        return 0;
    return 4;
}

static size_t json_escape(char out[6], unsigned char c)
{
    if (c == '"' || c == '\\') {
        out[0] = '\\';
        out[1] = (char)c;
        return 2;
    }
    memcpy(out, c < 0x80 ? "\\u00" : "\\\\x", 4);
    size_t n = c < 0x80 ? 4 : 3;
    out[n] = hex[c >> 4];
    out[n + 1] = hex[c & 15];
    return n + 2;
}

bool sr_logtext_json(sr_buffer *out, sr_bytes value)
{
    if (!value.at)
        return sr_buffer_add(out, "null", 4);
    if (!sr_buffer_add(out, "\"", 1))
        return false;
    size_t from = 0, i = 0;
    while (i < value.len) {
        unsigned char c = (unsigned char)value.at[i];
        size_t n = c >= 0x80 ? utf8(value, i) : printable(c) && c != '"' && c != '\\';
        if (n) {
            i += n;
            continue;
        }
        char escape[6];
        size_t len = json_escape(escape, c);
        if (!sr_buffer_add(out, value.at + from, i - from) || !sr_buffer_add(out, escape, len))
            return false;
        from = ++i;
    }
    return sr_buffer_add(out, value.at + from, i - from) && sr_buffer_add(out, "\"", 1);
}

bool sr_logtext_number(sr_buffer *out, uint64_t n)
{
    char digits[SR_DECIMAL_MAX];
    return sr_buffer_add_bytes(out, sr_decimal(digits + sizeof digits, n));
}
