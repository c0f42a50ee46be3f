#include "sha1.h"

enum { BLOCK = 64 };

static uint32_t turned(uint32_t x, unsigned bits)
{
    return x << bits | x >> (32 - bits);
}

static uint32_t word(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint32_t mixed(unsigned t, uint32_t b, uint32_t c, uint32_t d)
{
    static const uint32_t k[] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
    uint32_t f = t < 20 ? (b & c) | (~b & d) : t < 40 || t >= 60 ? b ^ c ^ d : (b & c) | (b & d) | (c & d);
    return f + k[t / 20];
}

static void block(uint32_t h[5], const unsigned char *at)
{
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
    for (unsigned t = 0; t < 80; t++) {
        w[t] = t < 16 ? word(at + 4 * t) : turned(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
        uint32_t next = turned(a, 5) + mixed(t, b, c, d) + e + w[t];
        e = d;
        d = c;
        c = turned(b, 30);
        b = a;
        a = next;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void sr_sha1(char digest[SR_SHA1_LEN], sr_bytes s)
{
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char padded[2 * BLOCK] = {0};
    size_t len = s.len + 9 > BLOCK ? 2 * BLOCK : BLOCK, bits = s.len * 8;
    if (s.len)
        memcpy(padded, s.at, s.len);
    padded[s.len] = 0x80;
    padded[len - 2] = (unsigned char)(bits >> 8);
    padded[len - 1] = (unsigned char)bits;
    for (size_t i = 0; i < len; i += BLOCK)
        block(h, padded + i);
    for (unsigned i = 0; i < SR_SHA1_LEN; i++)
        digest[i] = (char)(h[i / 4] >> (24 - 8 * (i % 4)));
}
