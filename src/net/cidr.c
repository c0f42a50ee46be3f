#include "cidr.h"

#include "../http/token.h"

enum { MAPPED_BITS = 96 }; /* of ::ffff:0:0/96, RFC 4291 2.5.5.2 */

static bool first_bits_equal(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;
    if (memcmp(a, b, bytes) != 0)
        return false;
    return rest == 0 || (a[bytes] ^ b[bytes]) >> (8 - rest) == 0;
}

static bool none_behind(const uint8_t *addr, unsigned bits, unsigned width)
{
    for (unsigned i = bits; i < width; i++)
        if (addr[i / 8] & (0x80U >> i % 8))
            return false;
    return true;
}

/* Parses a number without leading zeros, at most `max`. -1: s is no such number. */
static int prefix_parse(sr_bytes s, int max)
{
    int n = 0;
    if (!s.len || s.len > 3 || (s.len > 1 && *s.at == '0') || !sr_all_are(s, SR_CHAR_DIGIT))
        return -1;
    for (size_t i = 0; i < s.len; i++)
        n = n * 10 + (s.at[i] - '0');
    return n <= max ? n : -1;
}

bool sr_cidr_parse(sr_cidr *out, sr_bytes text)
{
    sr_peer net;
    memset(out, 0, sizeof *out);
    if (sr_bytes_equal(text, SR_BYTES("unix")))
        return true;
    const char *slash = text.len ? memchr(text.at, '/', text.len) : NULL;
    sr_bytes address = sr_bytes_of(text.at, slash ? (size_t)(slash - text.at) : text.len);
    if (!sr_peer_parse(&net, address))
        return false;
    int width = memchr(address.at, ':', address.len) ? 128 : 32, own = net.family == 4 ? 32 : 128;
    int bits = width;
    if (slash)
        bits = prefix_parse(sr_bytes_of(slash + 1, text.len - address.len - 1), width);
    if (width > own)
        bits -= MAPPED_BITS; /* a mapped address with a shorter prefix always has bits set after the prefix */
    if (bits < 0 || !none_behind(net.addr, (unsigned)bits, (unsigned)own))
        return false;
    out->family = net.family;
    out->bits = (uint8_t)bits;
    memcpy(out->addr, net.addr, sizeof out->addr);
    return true;
}

bool sr_cidrs_parse(sr_cidrs *out, sr_bytes text, sr_bytes *wrong)
{
    memset(out, 0, sizeof *out);
    while (sr_list_next(&text, wrong))
        if (out->n == SR_CIDRS_MAX || !sr_cidr_parse(&out->of[out->n++], *wrong))
            return false;
    return true;
}

bool sr_cidrs_have(const sr_cidrs *list, const sr_peer *peer)
{
    for (unsigned i = 0; i < list->n; i++) {
        const sr_cidr *c = &list->of[i];
        if (c->family == peer->family && first_bits_equal(c->addr, peer->addr, c->bits))
            return true;
    }
    return false;
}
