/* peer: addresses from text and from the kernel, and as text. */
#include "../../src/net/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "guard.h"
#include "tap.h"

static sr_bytes text(const char *s)
{
    return sr_bytes_of(guarded(s, strlen(s)), strlen(s));
}

static void addresses(void)
{
    static const char *const good[][2] = {
        {"127.0.0.1", "127.0.0.1"},
        {"255.255.255.255", "255.255.255.255"},
        {"::", "::"},
        {"2001:DB8:0:0::1", "2001:db8::1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"::ffff:c000:201", "192.0.2.1"},
        {"1234:1234:1234:1234:1234:1234:123.123.123.123", "1234:1234:1234:1234:1234:1234:7b7b:7b7b"},
    };
    static const char *const bad[] = {
        "",
        "1",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.256",
        "01.2.3.4",
        "1.2.3.4 ",
        " 1.2.3.4",
        "1.2.3.4:80",
        "0x7f.0.0.1",
        "127.1",
        "2130706433",
        ":",
        ":::",
        "1::2::3",
        "12345::",
        "::1%lo",
        "[::1]",
        "::g",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "::1.2.3.256",
        "1.2.3.4\t",
        "1234:1234:1234:1234:1234:1234:1234:1234:1234:1234",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char out[SR_PEER_TEXT_MAX];
        sr_peer p = {.port = 9};
        ok(sr_peer_parse(&p, text(good[i][0])) && p.port == 0, "an address: %s", good[i][0]);
        is_bytes(out, sr_peer_text(&p, out), good[i][1], "as text");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sr_peer p = {.port = 9};
        ok(!sr_peer_parse(&p, text(bad[i])) && p.port == 9, "no address: '%s'", bad[i]);
    }
    sr_peer p;
    ok(!sr_peer_parse(&p, sr_bytes_of(guarded("1.2.3.4\0x", 9), 9)), "no address: a NUL behind it");
}

static void is_peer(const sr_peer *p, const char *want, int port, const char *name)
{
    char out[SR_PEER_TEXT_MAX];
    is_bytes(out, sr_peer_text(p, out), want, name);
    is_int(p->port, port, "port");
}

static void accepted(void)
{
    sr_peer p;
    struct sockaddr_storage from = {.ss_family = AF_INET};
    struct sockaddr_in *in = (void *)&from;
    in->sin_port = htons(4711);
    inet_pton(AF_INET, "192.0.2.1", &in->sin_addr);
    sr_peer_init(&p, &from);
    is_peer(&p, "192.0.2.1", 4711, "IPv4");
    memset(&from, 0, sizeof from);
    struct sockaddr_in6 *in6 = (void *)&from;
    *in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(4711), .sin6_scope_id = 4000000};
    inet_pton(AF_INET6, "fe80::1", &in6->sin6_addr);
    sr_peer_init(&p, &from);
    is_peer(&p, "fe80::1", 4711, "IPv6 with a zone that has no name");
    is_int(p.scope, 4000000, "the zone");
    inet_pton(AF_INET6, "::ffff:192.0.2.1", &in6->sin6_addr);
    sr_peer_init(&p, &from);
    is_peer(&p, "192.0.2.1", 4711, "IPv4 on a socket of IPv6");
    is_int(p.scope, 0, "has no zone");
    memset(&from, 0, sizeof from);
    from.ss_family = AF_UNIX;
    sr_peer_init(&p, &from);
    is_peer(&p, "127.0.0.1", 0, "a unix socket");
    is_int(p.family, 0, "is one");
}

int main(void)
{
    addresses();
    accepted();
    return done_testing();
}
