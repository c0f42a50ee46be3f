#include "utf8.h"

enum { LOW = 0x80, HIGH = 0xbf }; /* of a byte that continues a character */

static bool begins(sr_utf8 *u, unsigned char c)
{
    uint8_t left = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    if (c < 0xc2 || c > 0xf4)
        return false;
    u->left = left;
    u->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : LOW;   /* no overlong form */
    u->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : HIGH; /* no surrogate, nothing above U+10FFFF */
    return true;
}

/* How many bytes from here on are ASCII, at least. */
static size_t plain(const char *at, size_t len)
{
    size_t n = 0;
    for (uint64_t word; n + sizeof word <= len; n += sizeof word) {
        memcpy(&word, at + n, sizeof word);
        if (word & 0x8080808080808080)
            break;
    }
    return n;
}

bool sr_utf8_feed(sr_utf8 *u, sr_bytes in)
{
    sr_utf8 now = *u;
    for (size_t i = 0; i < in.len; i++) {
        unsigned char c = (unsigned char)in.at[i];
        if (now.left) {
            if (c < now.low || c > now.high)
                return false;
            now.low = LOW;
            now.high = HIGH;
            now.left--;
        } else if (c >= 0x80) {
            if (!begins(&now, c))
                return false;
        } else {
            size_t more = plain(in.at + i, in.len - i);
            i += more ? more - 1 : 0;
        }
    }
    *u = now;
    return true;
}
