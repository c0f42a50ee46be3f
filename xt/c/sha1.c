/* sha1: digests that others have computed, around the length of a block. */
#include "../../src/websocket/sha1.h"
#include "tap.h"

static void is(const char *text, size_t len, const char *want, const char *name)
{
    char digest[SR_SHA1_LEN], hex[2 * SR_SHA1_LEN + 1];
    sr_sha1(digest, sr_bytes_of(text, len));
    for (int i = 0; i < SR_SHA1_LEN; i++)
        snprintf(hex + 2 * i, 3, "%02x", (unsigned char)digest[i]);
    is_bytes(hex, 2 * SR_SHA1_LEN, want, name);
}

int main(void)
{
    char a[SR_SHA1_MAX];
    memset(a, 'a', sizeof a);
    is("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709", "nothing");
    is("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d", "FIPS 180: abc");
    is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
       "84983e441c3bd26ebaae4aa1f95129e5e54670f1", "FIPS 180: two blocks");
    is(a, 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a", "the last that fits one block");
    is(a, 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699", "one more byte");
    is(a, 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d", "a block");
    is(a, 119, "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56", "the longest");
    return done_testing();
}
