/*
 * proxyline: the header of the PROXY protocol gives the same for every split, and what it names is an
 * address. Also what an operator writes: networks and addresses.
 * Judges: src/net/proxyline.c src/net/cidr.c src/net/peer.c
 */
#include "net/proxyline.h"

#include "fuzz.h"
#include "net/cidr.h"

static void split(const char *at, size_t size, sr_proxyline_result whole, const sr_proxyline *want)
{
    for (size_t n = 0; n <= size && n < 300; n++) {
        char *copy = fuzz_copy(at, n);
        sr_proxyline line;
        sr_proxyline_result result = sr_proxyline_feed(&line, sr_bytes_of(copy, n));
        free(copy);
        if (result == SR_PROXYLINE_MORE) {
            MUST(n < size || whole == SR_PROXYLINE_MORE);
            continue;
        }
        MUST(result == whole); /* what more bytes follow changes nothing */
        if (result == SR_PROXYLINE_DONE) {
            MUST(line.len <= n && line.len == want->len && line.named == want->named);
            MUST(!line.named || memcmp(&line.peer, &want->peer, sizeof line.peer) == 0);
        }
        return;
    }
}

/* The text of an address is the address again. */
static void around(const sr_peer *peer)
{
    char text[SR_PEER_TEXT_MAX];
    sr_peer again;
    size_t len = sr_peer_text(peer, text);
    MUST((peer->family == 4 || peer->family == 6) && len <= sizeof text);
    MUST(sr_peer_parse(&again, sr_bytes_of(text, len)));
    MUST(again.family == peer->family && memcmp(again.addr, peer->addr, sizeof again.addr) == 0);
}

static void networks(sr_bytes text, const sr_peer *peer)
{
    static sr_cidrs list;
    sr_bytes wrong = {NULL, 0};
    sr_peer other;
    if (sr_cidrs_parse(&list, text, &wrong))
        MUST(list.n >= 1 && list.n <= SR_CIDRS_MAX);
    else
        MUST(wrong.at >= text.at && wrong.at + wrong.len <= text.at + text.len);
    sr_cidrs_have(&list, peer);
    if (sr_peer_parse(&other, text))
        around(&other);
}

FUZZ_TARGET(proxyline)
{
    const char *at = (const char *)data;
    sr_proxyline line;
    sr_peer peer = {.family = 4, .addr = {127, 0, 0, 1}};
    sr_proxyline_result result = sr_proxyline_feed(&line, sr_bytes_of(at, size));
    if (result == SR_PROXYLINE_DONE) {
        MUST(line.len <= size && line.len <= SR_PROXYLINE_V2_MAX);
        if (line.named) {
            peer = line.peer;
            around(&peer);
        }
    }
    MUST(result != SR_PROXYLINE_MORE || size <= SR_PROXYLINE_V2_MAX);
    split(at, size, result, &line);
    networks(sr_bytes_of(size ? at : "", size), &peer);
    return 0;
}
