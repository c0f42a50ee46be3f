/* utf8: what RFC 3629 allows, whole and in pieces, and where it fails. */
#include "../../src/websocket/utf8.h"
#include "guard.h"
#include "tap.h"

/* Straight from the table of RFC 3629 4: the length of the character that begins here; 0: none does. */
static size_t character(const unsigned char *at, size_t len)
{
    static const struct row {
        unsigned char n, from, to, low, high;
    } rows[] = {{1, 0x00, 0x7f, 0, 0},       {2, 0xc2, 0xdf, 0x80, 0xbf}, {3, 0xe0, 0xe0, 0xa0, 0xbf},
                {3, 0xe1, 0xec, 0x80, 0xbf}, {3, 0xed, 0xed, 0x80, 0x9f}, {3, 0xee, 0xef, 0x80, 0xbf},
                {4, 0xf0, 0xf0, 0x90, 0xbf}, {4, 0xf1, 0xf3, 0x80, 0xbf}, {4, 0xf4, 0xf4, 0x80, 0x8f}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        if (at[0] < r->from || at[0] > r->to || len < r->n ||
            (r->n > 1 && (at[1] < r->low || at[1] > r->high)))
            continue;
        for (size_t k = 2; k < r->n; k++)
            if (at[k] < 0x80 || at[k] > 0xbf)
                return 0;
        return r->n;
    }
    return 0;
}

static bool by_table(const char *at, size_t len)
{
    for (size_t i = 0, n; i < len; i += n)
        if (!(n = character((const unsigned char *)at + i, len - i)))
            return false;
    return true;
}

/* All of four bytes whose first is `first`, with a few of each kind for the others. */
static bool agrees(unsigned first)
{
    static const unsigned char some[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90,
                                         0x9f, 0xa0, 0xbf, 0xc0, 0xe0, 0xff};
    enum { N = sizeof some };
    for (unsigned i = 0; i < N * N * N; i++)
        for (size_t len = 1; len <= 4; len++) {
            char text[4] = {(char)first, (char)some[i % N], (char)some[i / N % N], (char)some[i / N / N]};
            if (sr_is_utf8(sr_bytes_of(guarded(text, len), len)) != by_table(text, len))
                return false;
        }
    return true;
}

static void pieces(const char *text, size_t len, bool valid, const char *name)
{
    bool same = sr_is_utf8(sr_bytes_of(text, len)) == valid;
    for (size_t cut = 0; cut <= len; cut++) {
        sr_utf8 u = {0};
        bool got = sr_utf8_feed(&u, sr_bytes_of(guarded(text, cut), cut)) &&
                   sr_utf8_feed(&u, sr_bytes_of(guarded(text + cut, len - cut), len - cut)) &&
                   sr_utf8_whole(&u);
        same = same && got == valid;
    }
    ok(same, "%s: the same wherever it is cut", name);
}

int main(void)
{
    bool all = true;
    for (unsigned first = 0; first < 256; first++)
        all = agrees(first) && all;
    ok(all, "as the table of RFC 3629 says");

    static const char greek[] = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5 and 20 bytes of ASCII";
    static const char cut[] = "\xce\xba\xe1\xbd", surrogate[] = "ok \xed\xa0\x80 ok",
                      high[] = "\xf4\x90\x80\x80";
    pieces(greek, sizeof greek - 1, true, "Greek");
    pieces(cut, sizeof cut - 1, false, "a character that is cut off");
    pieces(surrogate, sizeof surrogate - 1, false, "a surrogate");
    pieces(high, sizeof high - 1, false, "above U+10FFFF");
    pieces("", 0, true, "nothing");

    sr_utf8 u = {0};
    ok(sr_utf8_feed(&u, SR_BYTES("\xf4")), "a first byte");
    ok(!sr_utf8_whole(&u), "it is not the end");
    ok(!sr_utf8_feed(&u, SR_BYTES("\x90")), "fails at the second one, not at the last");
    return done_testing();
}
