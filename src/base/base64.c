#include "base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void sr_base64_write(char *to, sr_bytes s)
{
    const unsigned char *at = (const unsigned char *)s.at;
    for (size_t i = 0; i < s.len; i += 3) {
        size_t left = s.len - i;
        uint32_t bits =
            (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) | (left > 2 ? at[i + 2] : 0);
        *to++ = digits[bits >> 18];
        *to++ = digits[bits >> 12 & 63];
        *to++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *to++ = left > 2 ? digits[bits & 63] : '=';
    }
}

int sr_base64_value(char c)
{
    const char *at = memchr(digits, c, sizeof digits - 1);
    return at ? (int)(at - digits) : -1;
}

size_t sr_base64_read(char *to, sr_bytes s)
{
    size_t n = 0, padding = 0;
    while (padding < 2 && padding < s.len && s.at[s.len - 1 - padding] == '=')
        padding++;
    if (s.len % 4)
        return SIZE_MAX;
    uint32_t bits = 0;
    for (size_t i = 0; i < s.len - padding; i++) {
        int v = sr_base64_value(s.at[i]);
        if (v < 0)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)v;
        if (i % 4)
            to[n++] = (char)(bits >> (6 - 2 * (i % 4)));
    }
    bool spare = padding && bits & (padding == 1 ? 3 : 15); /* bits that belong to no byte have to be 0 */
    return spare ? SIZE_MAX : n;
}
