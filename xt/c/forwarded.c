/* forwarded: who the client is, by tables of fields. Trusted are 10.0.0.0/8 and 2001:db8::/32. */
#include "../../src/http/forwarded.h"

#include "../../src/net/cidr.h"
#include "fields.h"
#include "tap.h"

static sr_cidrs trusted;
static unsigned judged;

static sr_hop judge(void *with, sr_bytes address)
{
    sr_peer peer;
    judged++;
    if (with != &trusted || !sr_peer_parse(&peer, address))
        return SR_HOP_NONE;
    return sr_cidrs_have(&trusted, &peer) ? SR_HOP_PROXY : SR_HOP_CLIENT;
}

/* "client port scheme host server_port", with - for what is not said */
static const char *result(const char *fields, sr_forwarded_kind kind)
{
    static char out[512];
    static sr_request r;
    sr_forwarded f;
    const char *at = request_of(&r, fields);
    if (!at)
        return r.why;
    sr_forwarded_read(&f, &r, at, kind, judge, &trusted);
    snprintf(out, sizeof out, "%.*s %d %s %.*s %d", f.client.at ? (int)f.client.len : 1,
             f.client.at ? f.client.at : "-", f.port, f.scheme ? sr_scheme_name(f.scheme) : "-",
             f.host.at ? (int)f.host.len : 1, f.host.at ? f.host.at : "-", f.server_port);
    return out;
}

typedef struct row {
    const char *fields, *want;
} row;

#define FOR(value) "X-Forwarded-For: " value "\r\n"
#define PROTO(value) "X-Forwarded-Proto: " value "\r\n"
#define HOST(value) "X-Forwarded-Host: " value "\r\n"
#define PORT(value) "X-Forwarded-Port: " value "\r\n"
#define RFC(value) "Forwarded: " value "\r\n"

static const row x_rows[] = {
    {"", "- 0 - - 0"},
    {FOR("192.0.2.1"), "192.0.2.1 0 - - 0"},
    {"x-FORWARDED-for: 192.0.2.1\r\n", "192.0.2.1 0 - - 0"},
    /* from the right */
    {FOR("6.6.6.6, 192.0.2.1"), "192.0.2.1 0 - - 0"},
    {FOR("6.6.6.6, 192.0.2.1, 10.0.0.2"), "192.0.2.1 0 - - 0"},
    {FOR("6.6.6.6, 192.0.2.1, 10.0.0.2, 2001:db8::7 , 10.0.0.3"), "192.0.2.1 0 - - 0"},
    {FOR("10.0.0.9, 192.0.2.1"), "192.0.2.1 0 - - 0"},
    {FOR("10.0.0.4, 10.0.0.3"), "10.0.0.4 0 - - 0"}, /* all are proxies: one of them asks for itself */
    {FOR("6.6.6.6") "Accept: */*\r\n" FOR("192.0.2.1, 10.0.0.3"), "192.0.2.1 0 - - 0"},
    {FOR("6.6.6.6, 192.0.2.1") FOR("10.0.0.3") FOR("10.0.0.4"), "192.0.2.1 0 - - 0"},
    /* forms */
    {FOR("192.0.2.1:4711"), "192.0.2.1 4711 - - 0"},
    {FOR("192.0.2.1:0"), "192.0.2.1 0 - - 0"},
    {FOR("[2001:db9::1]"), "2001:db9::1 0 - - 0"},
    {FOR("[2001:db9::1]:4711"), "2001:db9::1 4711 - - 0"},
    {FOR("2001:db9::1"), "2001:db9::1 0 - - 0"},
    {FOR("::ffff:192.0.2.1"), "::ffff:192.0.2.1 0 - - 0"},
    {FOR("192.0.2.1, ::ffff:10.0.0.2"), "192.0.2.1 0 - - 0"},
    {FOR("192.0.2.1,10.0.0.2:99"), "192.0.2.1 0 - - 0"},
    {FOR("192.0.2.1,,10.0.0.2, ,"), "192.0.2.1 0 - - 0"},
    /* junk ends the walk */
    {FOR("unknown"), "- 0 - - 0"},
    {FOR(""), "- 0 - - 0"},
    {FOR(","), "- 0 - - 0"},
    {FOR("192.0.2.1, junk"), "- 0 - - 0"},
    {FOR("192.0.2.1, junk, 10.0.0.2"), "10.0.0.2 0 - - 0"},
    {FOR("192.0.2.1, \", 10.0.0.2"), "10.0.0.2 0 - - 0"},
    {FOR("\"192.0.2.1\""), "- 0 - - 0"},
    {FOR("192.0.2.1 10.0.0.2"), "- 0 - - 0"},
    {FOR("192.0.2.1:65536"), "- 0 - - 0"},
    {FOR("192.0.2.1:"), "- 0 - - 0"},
    {FOR("192.0.2.1:x"), "- 0 - - 0"},
    {FOR(":80"), "- 0 - - 0"},
    {FOR("[192.0.2.1]"), "- 0 - - 0"},
    {FOR("[2001:db9::1"), "- 0 - - 0"},
    {FOR("[2001:db9::1]80"), "- 0 - - 0"},
    {FOR("[2001:db9::1]:"), "- 0 - - 0"},
    {FOR("[]"), "- 0 - - 0"},
    {FOR("["), "- 0 - - 0"},
    {FOR("192.0.2.01"), "- 0 - - 0"},
    {FOR("0x7f000001"), "- 0 - - 0"},
    {FOR("fe80::1%eth0"), "- 0 - - 0"},
    {FOR("192.0.2.1\xa0"), "- 0 - - 0"},
    /* the rest, alone and as lists */
    {PROTO("https"), "- 0 https - 0"},
    {FOR("192.0.2.1") PROTO("HTTPS") HOST("example.com:8443") PORT("8443"),
     "192.0.2.1 0 https example.com:8443 8443"},
    {FOR("192.0.2.1") PROTO("http") HOST("[2001:db8::1]"), "192.0.2.1 0 http [2001:db8::1] 0"},
    {FOR("192.0.2.1, 10.0.0.2") PROTO("https"), "192.0.2.1 0 https - 0"},
    {FOR("192.0.2.1, 10.0.0.2") PROTO("https, http") HOST("a, b") PORT("443, 80"), "192.0.2.1 0 https a 443"},
    {FOR("6.6.6.6, 192.0.2.1") PROTO("https, http") HOST("evil, a") PORT("443, 80"), "192.0.2.1 0 http a 80"},
    {FOR("192.0.2.1") PROTO("https") PROTO("http"), "192.0.2.1 0 http - 0"},
    {FOR("unknown") PROTO("https"), "- 0 https - 0"},
    {FOR("192.0.2.1, unknown, 10.0.0.2") PROTO("http, https, http"), "10.0.0.2 0 https - 0"},
    {PROTO("ftp") HOST("a b") PORT("x"), "- 0 - - 0"},
    {PROTO("https:") HOST("http://a") PORT("65536"), "- 0 - - 0"},
    {PROTO("httpss") HOST("a@b") PORT("0"), "- 0 - - 0"},
    {PROTO("") HOST("") PORT(""), "- 0 - - 0"},
    {HOST("a:99999") PORT("-1"), "- 0 - - 0"},
    /* the other kind says nothing, nor do names with '_' */
    {RFC("for=192.0.2.1;proto=https;host=b"), "- 0 - - 0"},
    {FOR("192.0.2.1") RFC("for=6.6.6.6;proto=https"), "192.0.2.1 0 - - 0"},
    {"X_Forwarded_For: 6.6.6.6\r\n"
     "X_Forwarded_Proto: https\r\n",
     "- 0 - - 0"},
};

static const row rfc_rows[] = {
    {"", "- 0 - - 0"},
    {RFC("for=192.0.2.1"), "192.0.2.1 0 - - 0"},
    {RFC("FOR=192.0.2.1;Proto=HTTPS;Host=example.com;by=10.0.0.1"), "192.0.2.1 0 https example.com 0"},
    {RFC("for=\"192.0.2.1:4711\"; proto=\"http\" ; host=\"example.com:8080\""),
     "192.0.2.1 4711 http example.com:8080 0"},
    {RFC("for=\"[2001:db9::1]:4711\""), "2001:db9::1 4711 - - 0"},
    {RFC("for=\"[2001:db9::1]\""), "2001:db9::1 0 - - 0"},
    {RFC("for=\"192.0.2.1:_port\""), "192.0.2.1 0 - - 0"},
    {RFC(";;for=192.0.2.1;;x=1;y=\"a,b;c\\\"d\";"), "192.0.2.1 0 - - 0"},
    /* from the right */
    {RFC("for=6.6.6.6;proto=https, for=192.0.2.1;proto=http, for=10.0.0.2"), "192.0.2.1 0 http - 0"},
    {RFC("for=6.6.6.6;proto=https, for=192.0.2.1, for=10.0.0.2;proto=http;host=b"), "192.0.2.1 0 - - 0"},
    {RFC("for=6.6.6.6") RFC("for=192.0.2.1;host=a") RFC("for=10.0.0.3;host=b"), "192.0.2.1 0 - a 0"},
    {RFC("for=192.0.2.1,,for=\"[2001:db8::2]\", ,"), "192.0.2.1 0 - - 0"},
    {RFC("for=10.0.0.4;proto=https, for=10.0.0.3;proto=http"), "10.0.0.4 0 https - 0"},
    /* quotes that a client has left open */
    {RFC("for=\"6.6.6.6, for=192.0.2.1"), "192.0.2.1 0 - - 0"},
    {RFC("for=6.6.6.6;x=\", for=\"192.0.2.1:5\""), "192.0.2.1 5 - - 0"},
    {RFC("for=6.6.6.6;x=\"\\\", for=\"192.0.2.1:5\";proto=http"), "192.0.2.1 5 http - 0"},
    {RFC("x=\"a, for=192.0.2.1;y=\"b,c\", for=10.0.0.2"), "192.0.2.1 0 - - 0"},
    {RFC("x=\"a\\\\\", for=192.0.2.1;y=\"b\\\\\", for=10.0.0.2"), "192.0.2.1 0 - - 0"},
    {RFC("for=192.0.2.1, \\\"\\\"\\\" for=10.0.0.2\""), "- 0 - - 0"},
    /* hidden names: scheme and host are the proxy's word all the same */
    {RFC("for=192.0.2.1, for=unknown;proto=https"), "- 0 https - 0"},
    {RFC("for=_hidden;host=a, for=10.0.0.2;host=b"), "10.0.0.2 0 - a 0"},
    {RFC("for=192.0.2.1, proto=https;by=_x"), "- 0 https - 0"},
    /* junk ends the walk, and says nothing itself */
    {RFC("for=192.0.2.1, for=10.0.0.2 proto=https"), "- 0 - - 0"},
    {RFC("junk;proto=https, for=10.0.0.2;proto=http"), "10.0.0.2 0 http - 0"},
    {RFC("for=192.0.2.1;for=192.0.2.1"), "- 0 - - 0"},
    {RFC("for=;proto=https"), "- 0 - - 0"},
    {RFC("for=\"\""), "- 0 - - 0"},
    {RFC("for=\"192.0.2.1"), "- 0 - - 0"},
    {RFC("for=192.0.2.1\""), "- 0 - - 0"},
    {RFC("for=192.0.2.1:80"), "- 0 - - 0"},
    {RFC("for=[2001:db9::1]"), "- 0 - - 0"},
    {RFC("for=\"2001:db9::1\""), "- 0 - - 0"},
    {RFC("for =192.0.2.1"), "- 0 - - 0"},
    {RFC("for= 192.0.2.1"), "- 0 - - 0"},
    {RFC("for=\"192.0.2\\.1\""), "- 0 - - 0"},
    {RFC("for=\"192.0.2.1\"x"), "- 0 - - 0"},
    {RFC("=192.0.2.1"), "- 0 - - 0"},
    {RFC("192.0.2.1"), "- 0 - - 0"},
    {RFC("for=192.0.2.1;proto=wss;host=\"a b\""), "192.0.2.1 0 - - 0"},
    /* the other kind says nothing */
    {FOR("6.6.6.6") PROTO("https") HOST("b") PORT("1"), "- 0 - - 0"},
};

static void check(const row *rows, size_t n, sr_forwarded_kind kind)
{
    for (size_t i = 0; i < n; i++) {
        const char *got = result(rows[i].fields, kind);
        if (!ok(strcmp(got, rows[i].want) == 0, "row %zu: %s", i, rows[i].want))
            printf("# got %s\n", got);
    }
}

/* The work is bounded by the bytes: lists as long as a head may be, of what is slowest. */
static void long_lists(void)
{
    static char fields[65000];
    static const char *const parts[] = {"10.0.0.2,",         "\\\"", "\",\"",        "\"",
                                        "a=\"\\\"\\\"\\\",", ",",    "for=10.0.0.2,"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        for (int kind = SR_FORWARDED_X; kind <= SR_FORWARDED_RFC7239; kind++) {
            size_t n = (size_t)sprintf(fields, kind ? "Forwarded: " : "X-Forwarded-For: ");
            while (n < sizeof fields - 40)
                n += (size_t)sprintf(fields + n, "%s", parts[i]);
            sprintf(fields + n, "%s\r\n", kind ? "for=10.0.0.9" : "10.0.0.9");
            judged = 0;
            result(fields, (sr_forwarded_kind)kind);
            ok(judged < sizeof fields / 9, "a list of %s: %u addresses", parts[i], judged);
        }
}

int main(void)
{
    sr_bytes wrong;
    sr_cidrs_parse(&trusted, SR_BYTES("10.0.0.0/8,2001:db8::/32"), &wrong);
    check(x_rows, sizeof x_rows / sizeof *x_rows, SR_FORWARDED_X);
    check(rfc_rows, sizeof rfc_rows / sizeof *rfc_rows, SR_FORWARDED_RFC7239);
    long_lists();
    return done_testing();
}
