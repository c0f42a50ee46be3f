/*
 * proxyline: every header whole, with bytes behind it, and cut at each byte; each byte of a good one made
 * wrong.
 */
#include "../../src/net/proxyline.h"

#include <stdlib.h>

#include "guard.h"
#include "tap.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V4 "\xc0\x00\x02\x01\xc0\x00\x02\x02\xdc\x04\x01\xbb" /* 192.0.2.1:56324 to 192.0.2.2:443 */
#define V6_ADDRESS "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0"
#define V6 V6_ADDRESS "\x01" V6_ADDRESS "\x02\xdc\x04\x01\xbb"
#define MAPPED "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x01" V6_ADDRESS "\x02\xdc\x04\x01\xbb"

typedef struct header {
    const char *name, *want; /* want: "address port", "-" when nobody is named, NULL: it is none */
    const char *at;
    size_t len;
} header;
#define HEADER(name, want, bytes)                                                                            \
    {                                                                                                        \
        name, want, bytes, sizeof(bytes) - 1                                                                 \
    }

static const header good[] = {
    HEADER("v1 TCP4", "192.0.2.1 56324", "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n"),
    HEADER("v1 longest TCP4", "255.255.255.255 65535",
           "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n"),
    HEADER("v1 port 0", "0.0.0.0 0", "PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n"),
    HEADER("v1 TCP6", "2001:db8::1 56324", "PROXY TCP6 2001:db8::1 2001:DB8::2 56324 443\r\n"),
    HEADER("v1 longest TCP6", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535",
           "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
           "65535 65535\r\n"),
    HEADER("v1 TCP6, mapped", "192.0.2.1 56324", "PROXY TCP6 ::ffff:192.0.2.1 ::1 56324 443\r\n"),
    HEADER("v1 UNKNOWN", "-", "PROXY UNKNOWN\r\n"),
    HEADER("v1 UNKNOWN and more", "-", "PROXY UNKNOWN \x01 whatever\r\n"),
    HEADER("v1 longest UNKNOWN", "-",
           "PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
           "65535 65535\r\n"),
    HEADER("v2 TCP4", "192.0.2.1 56324", SIGNATURE "\x21\x11\0\x0c" V4),
    HEADER("v2 UDP4", "192.0.2.1 56324", SIGNATURE "\x21\x12\0\x0c" V4),
    HEADER("v2 TCP4, more fields", "192.0.2.1 56324",
           SIGNATURE "\x21\x11\0\x14" V4 "\x04\0\x05"
                     "abcde"),
    HEADER("v2 TCP4, broken fields", "192.0.2.1 56324", SIGNATURE "\x21\x11\0\x0f" V4 "\x04\xff\xff"),
    HEADER("v2 TCP6", "2001:db8::1 56324", SIGNATURE "\x21\x21\0\x24" V6),
    HEADER("v2 UDP6", "2001:db8::1 56324", SIGNATURE "\x21\x22\0\x24" V6),
    HEADER("v2 TCP6, mapped", "192.0.2.1 56324", SIGNATURE "\x21\x21\0\x24" MAPPED),
    HEADER("v2 LOCAL", "-", SIGNATURE "\x20\x00\0\0"),
    HEADER("v2 LOCAL, addresses", "-", SIGNATURE "\x20\x11\0\x0c" V4),
    HEADER("v2 LOCAL, any family", "-", SIGNATURE "\x20\xff\0\x01x"),
    HEADER("v2 unspecified", "-", SIGNATURE "\x21\x00\0\0"),
    HEADER("v2 unspecified, addresses", "-", SIGNATURE "\x21\x00\0\x0c" V4),
    HEADER("v2 IPv4, unspecified protocol", "-", SIGNATURE "\x21\x10\0\x0c" V4),
    HEADER("v2 TCP of no family", "-",
           SIGNATURE "\x21\x01\0\x03"
                     "abc"),
};

static const header bad[] = {
    HEADER("a request", NULL, "GET / HTTP/1.1\r\n"),
    HEADER("a request PROXY", NULL, "PROXY / HTTP/1.1\r\n"),
    HEADER("small letters", NULL, "proxy TCP4 192.0.2.1 192.0.2.2 56324 443\r\n"),
    HEADER("NUL", NULL, "\0"),
    HEADER("LF alone", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\n"),
    HEADER("CR alone", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\rG"),
    HEADER("CR CR LF", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\r\n"),
    HEADER("two spaces", NULL, "PROXY  TCP4 192.0.2.1 192.0.2.2 56324 443\r\n"),
    HEADER("a space behind", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443 \r\n"),
    HEADER("a tab", NULL, "PROXY TCP4\t192.0.2.1 192.0.2.2 56324 443\r\n"),
    HEADER("a word too many", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 56324 443 1\r\n"),
    HEADER("a word too few", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 56324\r\n"),
    HEADER("nothing", NULL, "PROXY \r\n"),
    HEADER("no space", NULL, "PROXY\r\n"),
    HEADER("TCP", NULL, "PROXY TCP 192.0.2.1 192.0.2.2 56324 443\r\n"),
    HEADER("UDP4", NULL, "PROXY UDP4 192.0.2.1 192.0.2.2 56324 443\r\n"),
    HEADER("UNKNOWNS", NULL, "PROXY UNKNOWNS\r\n"),
    HEADER("TCP4 of IPv6", NULL, "PROXY TCP4 ::1 ::1 56324 443\r\n"),
    HEADER("TCP6 of IPv4", NULL, "PROXY TCP6 192.0.2.1 192.0.2.2 56324 443\r\n"),
    HEADER("TCP4, then IPv6", NULL, "PROXY TCP4 192.0.2.1 ::1 56324 443\r\n"),
    HEADER("a zero in front", NULL, "PROXY TCP4 192.0.02.1 192.0.2.2 56324 443\r\n"),
    HEADER("256", NULL, "PROXY TCP4 192.0.2.256 192.0.2.2 56324 443\r\n"),
    HEADER("a wrong second address", NULL, "PROXY TCP4 192.0.2.1 192.0.2 56324 443\r\n"),
    HEADER("port 65536", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 65536 443\r\n"),
    HEADER("port -1", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 -1 443\r\n"),
    HEADER("port 080", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 080 443\r\n"),
    HEADER("port x", NULL, "PROXY TCP4 192.0.2.1 192.0.2.2 80 x\r\n"),
    HEADER("a zone", NULL, "PROXY TCP6 fe80::1%1 ::1 56324 443\r\n"),
    HEADER("NUL in an address", NULL, "PROXY TCP4 192.0.2.1\0 192.0.2.2 56324 443\r\n"),
    HEADER("v2 signature of 11 bytes", NULL, "\r\n\r\n\0\r\nQUIT\r"),
    HEADER("v2 version 1", NULL, SIGNATURE "\x11"),
    HEADER("v2 version 3", NULL, SIGNATURE "\x31"),
    HEADER("v2 command 2", NULL, SIGNATURE "\x22"),
    HEADER("v2 command 15", NULL, SIGNATURE "\x2f"),
    HEADER("v2 family 4", NULL, SIGNATURE "\x21\x41"),
    HEADER("v2 protocol 3", NULL, SIGNATURE "\x21\x13"),
    HEADER("v2 TCP4 of 11 bytes", NULL, SIGNATURE "\x21\x11\0\x0b"),
    HEADER("v2 TCP6 of 35 bytes", NULL, SIGNATURE "\x21\x21\0\x23"),
    HEADER("v2 unix of 215 bytes", NULL, SIGNATURE "\x21\x31\0\xd7"),
    HEADER("v2 past the limit", NULL, SIGNATURE "\x21\x11\x0f\xf1"),
    HEADER("v2 LOCAL past the limit", NULL, SIGNATURE "\x20\x00\xff\xff"),
};

static sr_proxyline_result feed(sr_proxyline *p, const char *at, size_t len)
{
    return sr_proxyline_feed(p, sr_bytes_of(guarded(at, len), len));
}

static const char *shown(const sr_proxyline *p)
{
    static char out[SR_PEER_TEXT_MAX + 8];
    if (!p->named)
        return "-";
    size_t len = sr_peer_text(&p->peer, out);
    sprintf(out + len, " %d", p->peer.port);
    return out;
}

static void check_good(const header *h)
{
    sr_proxyline p;
    bool more = true;
    for (size_t len = 0; len < h->len; len++)
        more &= feed(&p, h->at, len) == SR_PROXYLINE_MORE;
    ok(more, "%s: more is needed until it is whole", h->name);
    ok(feed(&p, h->at, h->len) == SR_PROXYLINE_DONE && p.len == h->len, "%s: whole", h->name);
    is_bytes(shown(&p), strlen(shown(&p)), h->want, h->name);
    char behind[SR_PROXYLINE_V2_MAX + 16];
    memcpy(behind, h->at, h->len);
    memcpy(behind + h->len, "GET / HTTP/1.1\r\n", 16);
    ok(feed(&p, behind, h->len + 16) == SR_PROXYLINE_DONE && p.len == h->len, "%s: a request behind it",
       h->name);
}

/* What is no header is none at one length, and none with more bytes. */
static void check_bad(const header *h)
{
    sr_proxyline p;
    bool was = false, steady = true;
    for (size_t len = 0; len <= h->len; len++) {
        sr_proxyline_result r = feed(&p, h->at, len);
        steady &= r == SR_PROXYLINE_BAD || (r == SR_PROXYLINE_MORE && !was);
        was = r == SR_PROXYLINE_BAD;
    }
    ok(was && steady, "no header: %s", h->name);
}

static void limits(void)
{
    sr_proxyline p;
    char line[SR_PROXYLINE_V1_MAX + 3];
    memset(line, 'x', sizeof line);
    memcpy(line, "PROXY UNKNOWN ", 14);
    is_int(feed(&p, line, SR_PROXYLINE_V1_MAX - 2), SR_PROXYLINE_MORE, "v1: 105 bytes, CRLF may come");
    is_int(feed(&p, line, SR_PROXYLINE_V1_MAX - 1), SR_PROXYLINE_BAD, "v1: 106 bytes, and it can't");
    memcpy(line + SR_PROXYLINE_V1_MAX - 2, "\r\n", 2);
    is_int(feed(&p, line, SR_PROXYLINE_V1_MAX), SR_PROXYLINE_DONE, "v1: 107 bytes");
    memcpy(line + SR_PROXYLINE_V1_MAX - 2, "x\r\n", 3);
    is_int(feed(&p, line, SR_PROXYLINE_V1_MAX + 1), SR_PROXYLINE_BAD, "v1: 108 bytes");

    char *block = calloc(1, SR_PROXYLINE_V2_MAX);
    memcpy(block, SIGNATURE "\x21\x31\0\xd8", 16);
    is_int(feed(&p, block, 16 + 216), SR_PROXYLINE_DONE, "v2: a unix socket");
    ok(!p.named && p.len == 16 + 216, "names nobody");
    memcpy(block, SIGNATURE "\x21\x11\x0f\xf0" V4, 28);
    is_int(feed(&p, block, SR_PROXYLINE_V2_MAX - 1), SR_PROXYLINE_MORE, "v2: 4095 bytes of 4096");
    is_int(feed(&p, block, SR_PROXYLINE_V2_MAX), SR_PROXYLINE_DONE, "v2: 4096 bytes");
    free(block);
}

/*
 * Random bytes in a good header: whatever it says, it says the same in every split, and reads no byte too
 * many.
 */
static void damaged(void)
{
    bool same = true;
    srand(1);
    for (int i = 0; i < 20000; i++) {
        char bytes[300];
        const header *h = &good[(size_t)rand() % (sizeof good / sizeof *good)];
        memcpy(bytes, h->at, h->len);
        for (int n = rand() % 3; n >= 0; n--)
            bytes[(size_t)rand() % h->len] = (char)rand();
        sr_proxyline whole, part;
        sr_proxyline_result got = feed(&whole, bytes, h->len), r = SR_PROXYLINE_MORE;
        for (size_t len = 0; len <= h->len && r == SR_PROXYLINE_MORE; len++)
            r = feed(&part, bytes, len);
        same &= r == got && (r != SR_PROXYLINE_DONE || (part.len == whole.len && part.named == whole.named));
    }
    ok(same, "damaged headers");
}

int main(void)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        check_good(&good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_bad(&bad[i]);
    limits();
    damaged();
    return done_testing();
}
