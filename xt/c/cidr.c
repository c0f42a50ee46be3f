/* cidr: which networks are some, and who is in them. */
#include "../../src/net/cidr.h"

#include "guard.h"
#include "tap.h"

static sr_bytes text(const char *s)
{
    return sr_bytes_of(guarded(s, strlen(s)), strlen(s));
}

/* "unix", or an address */
static sr_peer peer_of(const char *s)
{
    sr_peer p = {0};
    if (strcmp(s, "unix") != 0 && !sr_peer_parse(&p, text(s)))
        ok(false, "no address: %s", s);
    return p;
}

static void networks(void)
{
    static const char *const good[] = {
        "unix",        "0.0.0.0/0",           "10.0.0.0/8",        "10.1.2.3",        "10.1.2.3/32",
        "::/0",        "2001:db8::/32",       "2001:db8::1",       "2001:db8::1/128", "fe80::/10",
        "10.1.2.2/31", "::ffff:10.0.0.0/104", "::ffff:0.0.0.0/96", "128.0.0.0/1",     "8000::/1",
    };
    static const char *const bad[] = {
        "",
        "/",
        "/8",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/08",
        "10.0.0.0/8 ",
        "10.0.0.0 /8",
        "10.0.0.0/8/8",
        "10.0.0.1/8",
        "10.0.0.0/256",
        "10.0.0/8",
        "::1/129",
        "::1/127",
        "2001:db9::/31",
        "::ffff:10.0.0.0/95",
        "::ffff:10.0.0.1/104",
        "localhost",
        "Unix",
        "unix/0",
        "*",
        "0.0.0.1/0",
        "10.0.0.0/255.0.0.0",
        "10.0.0.0/4294967304",
    };
    sr_cidr net;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ok(sr_cidr_parse(&net, text(good[i])), "a network: %s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(!sr_cidr_parse(&net, text(bad[i])), "no network: '%s'", bad[i]);
}

static void membership(void)
{
    static const struct {
        const char *list, *peer;
        bool want;
    } cases[] = {
        {"10.0.0.0/8", "10.255.255.255", true},
        {"10.0.0.0/8", "11.0.0.0", false},
        {"10.0.0.0/8", "9.255.255.255", false},
        {"10.0.0.0/8", "::ffff:10.0.0.1", true},
        {"10.0.0.0/8", "unix", false},
        {"10.0.0.0/8", "a00::", false}, /* the same first byte */
        {"192.168.32.0/19", "192.168.63.255", true},
        {"192.168.32.0/19", "192.168.64.0", false},
        {"192.168.32.0/19", "192.168.31.255", false},
        {"127.0.0.1", "127.0.0.1", true},
        {"127.0.0.1", "127.0.0.2", false},
        {"::ffff:10.0.0.0/104", "10.9.9.9", true},
        {"::ffff:10.0.0.0/104", "11.9.9.9", false},
        {"::ffff:0.0.0.0/96", "1.2.3.4", true},
        {"::ffff:0.0.0.0/96", "::1", false},
        {"0.0.0.0/0", "203.0.113.9", true},
        {"0.0.0.0/0", "::1", false},
        {"::/0", "2001:db8::1", true},
        {"::/0", "127.0.0.1", false},
        {"::/0", "unix", false},
        {"2001:db8::/33", "2001:db8:7fff::", true},
        {"2001:db8::/33", "2001:db8:8000::", false},
        {"::1", "::1", true},
        {"::1", "::2", false},
        {"unix", "unix", true},
        {"unix", "127.0.0.1", false},
        {"unix", "::", false},
        {"10.0.0.0/8, ::1 ,unix", "::1", true},
        {"10.0.0.0/8, ::1 ,unix", "unix", true},
        {"10.0.0.0/8,::1,unix", "10.0.0.9", true},
        {"10.0.0.0/8,::1,unix", "127.0.0.1", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sr_cidrs list;
        sr_bytes wrong;
        bool parsed = sr_cidrs_parse(&list, text(cases[i].list), &wrong);
        sr_peer peer = peer_of(cases[i].peer);
        ok(parsed && sr_cidrs_have(&list, &peer) == cases[i].want, "%s is %sin %s", cases[i].peer,
           cases[i].want ? "" : "not ", cases[i].list);
    }
    sr_cidrs list;
    sr_bytes wrong;
    sr_peer scoped = peer_of("fe80::1");
    scoped.scope = 3;
    scoped.port = 80;
    ok(sr_cidrs_parse(&list, text("fe80::/10"), &wrong) && sr_cidrs_have(&list, &scoped), "zone and port");
    memset(&list, 0, sizeof list);
    ok(!sr_cidrs_have(&list, &scoped), "nobody is in no network");
}

static void lists(void)
{
    static const char *const cases[][2] = {
        {"10.0.0.0/8,10.0.0.1/8,x", "10.0.0.1/8"},
        {"", ""},
        {"::1,", ""},
        {"x,::1", "x"},
        {"::1 ::2", "::1 ::2"},
    };
    sr_cidrs list;
    sr_bytes wrong;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ok(!sr_cidrs_parse(&list, text(cases[i][0]), &wrong), "no list: '%s'", cases[i][0]);
        is_bytes(wrong.at, wrong.len, cases[i][1], "what is wrong");
    }
    char many[10 * (SR_CIDRS_MAX + 1) + 1] = "";
    for (int i = 0; i < SR_CIDRS_MAX; i++)
        sprintf(many + strlen(many), "%s10.0.0.%d", i ? "," : "", i);
    ok(sr_cidrs_parse(&list, text(many), &wrong) && list.n == SR_CIDRS_MAX, "as many as there may be");
    strcat(many, ",10.0.1.0");
    ok(!sr_cidrs_parse(&list, text(many), &wrong), "and one more");
    is_bytes(wrong.at, wrong.len, "10.0.1.0", "that one");
}

int main(void)
{
    networks();
    membership();
    lists();
    return done_testing();
}
