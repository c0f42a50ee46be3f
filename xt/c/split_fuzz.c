/*
 * split_fuzz: seeds, mutated by a fixed pseudo-random sequence. Whatever comes out, random splits must not
 * change it. SEED=n and ROUNDS=n in the environment look elsewhere and longer.
 */
#include <stdlib.h>

#include "feed.h"

static uint64_t state;

static size_t below(size_t n) /* xorshift64*, n > 0 */
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (size_t)((state * 2685821657736338717u) >> 33) % n;
}

static const char *const heads[] = {
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\nPOST /a%20b?c=d HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close, TE\r\n\r\n5\r\nhello\r\n",
    "GET http://a/b HTTP/1.0\r\nHost: A:80\r\nX_y: z\r\nProxy: p\r\nCookie: a=b; c=\xc3\xa9\r\n\r\n",
    ("OPTIONS * HTTP/1.1\r\nHost: [::1]:5000\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
     "Sec-WebSocket-Version: 13\r\n\r\n"),
    "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
    "PROPFIND /a/b/c HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nContent-Type: a/b\r\n\r\n",
};

static const char *const bodies[] = {
    "5\r\nhello\r\n0\r\n\r\n",
    "5;a=b;c=\"d\\\"e\"\r\nhello\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0;x\r\nA: "
    "b\r\nX-Long-Name-Of-A-Field: "
    "c\r\n\r\nGET",
    "0000000000000001\r\na\r\n2\r\n\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
};

/* Pieces in which parsers differ. */
static const char *const pieces[] = {
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n",
    ":",
    " ",
    "\t",
    ";",
    "\"",
    ",",
    "0",
    "chunked",
    "Host: a\r\n",
    "%00",
    "?",
    "\\",
    "_",
    "AAAAA",
    "\r\n\r ",
    "\r\nHost: b\r\n",
    " HTTP/1.1\r\n",
    "\xff\x80",
};

static char bytes[1024];
static size_t len;

static void replace(size_t at, size_t old, const char *with, size_t count)
{
    if (old > len - at)
        old = len - at;
    if (len - old + count > sizeof bytes)
        return;
    memmove(bytes + at + count, bytes + at + old, len - at - old);
    memcpy(bytes + at, with, count);
    len += count - old;
}

static void mutate(const char *seed)
{
    len = 0;
    replace(0, 0, seed, strlen(seed));
    for (size_t n = below(4); n > 0 && len > 0; n--) {
        size_t at = below(len + 1);
        char byte = (char)below(256);
        const char *piece = pieces[below(sizeof pieces / sizeof *pieces)];
        switch (below(5)) {
        case 0:
            replace(at, 1, &byte, 1);
            break;
        case 1:
            replace(at, 0, piece, strlen(piece));
            break;
        case 2:
            replace(at, 1 + below(4), piece, strlen(piece));
            break;
        case 3:
            replace(at, 1 + below(8), "", 0);
            break;
        default: /* some of it again */
            replace(at, 0, seed, below(strlen(seed)));
        }
    }
}

/* In pieces of random length. */
static sr_parse feed_randomly(sr_request *r, const sr_request_limits *limits)
{
    sr_request_init(r);
    size_t most = 1 + below(len + 1);
    for (size_t n = 0;;) {
        n += below(most + 1);
        if (n > len)
            n = len;
        sr_parse p = sr_request_feed(r, limits, guarded(bytes, n), n);
        if (p != SR_PARSE_MORE || n == len)
            return p;
    }
}

static bool head_agrees(void)
{
    static const sr_request_limits all[] = {{8192, 65536, 100, true},
                                            {20, 60, 2, true},
                                            {40, 80, 4, false},
                                            {70, 71, 1, false},
                                            {66, 300, 3, true}};
    static sr_request whole, pieces_of;
    const sr_request_limits *limits = &all[below(sizeof all / sizeof *all)];
    sr_parse p = feed_request(&whole, limits, bytes, len, len, 0);
    for (int i = 0; i < 3; i++) {
        sr_parse q = feed_randomly(&pieces_of, limits);
        if (!same_request(p, &whole, q, &pieces_of)) {
            printf("# limits %u %u %u: whole %d %d %s, in pieces %d %d %s\n", limits->line, limits->head,
                   limits->fields, (int)p, whole.status, whole.why ? whole.why : "", (int)q, pieces_of.status,
                   pieces_of.why ? pieces_of.why : "");
            return false;
        }
    }
    return true;
}

static bool body_agrees(void)
{
    feed_body whole, in_pieces;
    feed_chunked(&whole, bytes, len, len, 0);
    for (int i = 0; i < 3; i++) {
        feed_chunked(&in_pieces, bytes, len, below(len + 1), 1 + below(len + 1));
        if (!same_body(&whole, &in_pieces))
            return false;
    }
    return true;
}

int main(void)
{
    const char *seed = getenv("SEED"), *rounds = getenv("ROUNDS");
    state = seed ? strtoull(seed, NULL, 10) : 20250101;
    state += !state;
    long count = rounds ? atol(rounds) : 40000;
    bool same = true;
    for (long i = 0; same && i < count; i++) {
        mutate(heads[below(sizeof heads / sizeof *heads)]);
        same = head_agrees();
    }
    if (!ok(same, "heads: random splits agree"))
        tap_bytes("head", bytes, len);
    same = true;
    for (long i = 0; same && i < count; i++) {
        mutate(bodies[below(sizeof bodies / sizeof *bodies)]);
        same = body_agrees();
    }
    if (!ok(same, "chunked: random splits agree"))
        tap_bytes("body", bytes, len);
    return done_testing();
}
