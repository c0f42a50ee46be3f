/*
 * client: whom a connection and a request come from. An engine that only has a configuration, connections
 * without sockets.
 */
#include "conn/client.h"
#include "conn/proxyhead.h"
#include "http1/head.h"

#include <stdlib.h>

#include "guard.h"
#include "tap.h"

#define V1 "PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n"

static sr_engine *engine(const char *trusted, bool proxy_protocol)
{
    static sr_engine *e;
    sr_bytes wrong;
    free(e);
    e = aligned_alloc(_Alignof(sr_engine), sizeof *e);
    memset(e, 0, sizeof *e);
    e->config.proxy_protocol = proxy_protocol;
    if (trusted && !sr_cidrs_parse(&e->config.trusted, sr_bytes_of(trusted, strlen(trusted)), &wrong))
        ok(false, "%s", trusted);
    return e;
}

static sr_peer peer_of(const char *s)
{
    sr_peer p = {0};
    if (*s != 'u' && !sr_peer_parse(&p, sr_bytes_of(s, strlen(s))))
        ok(false, "no address: %s", s);
    return p;
}

static sr_conn *conn_of(const char *peer, bool proxy_header)
{
    sr_peer p = peer_of(peer);
    sr_conn *c = sr_conn_new(-1, &p, 0);
    c->proxy_header = proxy_header;
    return c;
}

static void is_peer(const sr_peer *p, const char *want, const char *name)
{
    char out[SR_PEER_TEXT_MAX + 8];
    size_t len = sr_peer_text(p, out);
    len += (size_t)sprintf(out + len, " %d", p->port);
    is_bytes(out, len, want, name);
}

static void welcome(void)
{
    static const struct {
        const char *trusted, *peer;
        bool protocol, want;
    } cases[] = {
        {NULL, "192.0.2.7", false, true},
        {NULL, "192.0.2.7", true, true},
        {NULL, "unix", true, true},
        {"10.0.0.0/8", "192.0.2.7", false, true},
        {"10.0.0.0/8", "192.0.2.7", true, false},
        {"10.0.0.0/8", "10.1.1.1", true, true},
        {"10.0.0.0/8", "unix", true, false},
        {"unix", "unix", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sr_peer p = peer_of(cases[i].peer);
        const sr_engine *e = engine(cases[i].trusted, cases[i].protocol);
        ok(sr_client_welcome(e, &p) == cases[i].want, "%s, trusted %s, protocol %s", cases[i].peer,
           cases[i].trusted ? cases[i].trusted : "nobody", cases[i].protocol ? "on" : "off");
    }
}

/* In one piece that is not kept, as a connection reads it; then in two, as they come and as they are kept. */
static void proxy_header(void)
{
    static const char bytes[] = V1 "GET";
    size_t header = sizeof V1 - 1, all = sizeof bytes - 1;
    bool right = true;
    for (size_t first = 1; first <= all; first++) {
        sr_conn *c = conn_of("127.0.0.1", true);
        sr_bytes view = sr_bytes_of(guarded(bytes, first), first);
        sr_proxyhead got = sr_proxyhead_take(c, &view, true);
        right &= got == (first > header ? SR_PROXYHEAD_DONE : SR_PROXYHEAD_MORE) &&
                 c->proxy_header == (first < header);
        right &= sr_buffer_len(&c->in) == (first < header ? first : 0);
        if (first < header) {
            sr_buffer_add(&c->in, bytes + first, all - first);
            view = sr_bytes_of(sr_buffer_at(&c->in), all);
            right &= sr_proxyhead_take(c, &view, false) == SR_PROXYHEAD_DONE && !c->proxy_header;
            right &= view.at == sr_buffer_at(&c->in) && sr_buffer_len(&c->in) == 3;
        }
        right &= first == header || (view.len == (first > header ? first - header : 3) && *view.at == 'G');
        right &= c->peer.port == 56324;
        sr_conn_free(c);
    }
    ok(right, "a header in two parts");

    sr_conn *c = conn_of("127.0.0.1", true);
    sr_bytes view = SR_BYTES(V1);
    sr_buffer_add_bytes(&c->in, view);
    view.at = sr_buffer_at(&c->in);
    ok(sr_proxyhead_take(c, &view, false) == SR_PROXYHEAD_MORE && !c->proxy_header && !c->in.data,
       "nothing behind it: nothing is kept");
    is_peer(&c->peer, "192.0.2.7 56324", "the peer");
    sr_conn_free(c);

    c = conn_of("127.0.0.1", true);
    view = SR_BYTES("PROXY UNKNOWN\r\nGET");
    ok(sr_proxyhead_take(c, &view, true) == SR_PROXYHEAD_DONE && !c->proxy_header, "UNKNOWN");
    is_peer(&c->peer, "127.0.0.1 0", "names nobody");
    sr_conn_free(c);

    c = conn_of("127.0.0.1", true);
    view = SR_BYTES("GET / HTTP/1.1\r\n");
    ok(sr_proxyhead_take(c, &view, true) == SR_PROXYHEAD_BAD && c->proxy_header, "no header");
    sr_conn_free(c);
}

/* "client port scheme host server_port" */
static void is_forwarded(sr_engine *e, const char *peer, const char *fields, const char *want)
{
    static sr_request r;
    sr_request_limits limits = {.line = 8192, .head = 65536, .fields = 100};
    char head[1000], out[200], shown[SR_PEER_TEXT_MAX + 8];
    int len = sprintf(head, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    const char *base = guarded(head, (size_t)len);
    sr_conn *c = conn_of(peer, false);
    sr_request_init(&r);
    if (sr_request_feed(&r, &limits, base, (size_t)len) != SR_PARSE_DONE)
        ok(false, "no request: %s", fields);
    sr_exchange *x = sr_exchange_begin(e, c);
    const sr_forwarded *f = sr_client_forwarded(e, x, &r, base);
    size_t n = sr_peer_text(&x->client, shown);
    int end = sprintf(out, "%.*s %d", (int)n, shown, x->client.port);
    if (f)
        end += sprintf(out + end, " %s %.*s %d", f->scheme ? sr_scheme_name(f->scheme) : "-",
                       f->host.at ? (int)f->host.len : 1, f->host.at ? f->host.at : "-", f->server_port);
    is_bytes(out, (size_t)end, want, peer);
    is_peer(&c->peer,
            strcmp(peer, "unix") ? strcmp(peer, "10.0.0.1") ? "192.0.2.7 0" : "10.0.0.1 0" : "127.0.0.1 0",
            "the peer stays");
    sr_exchange_end(e, c->exchange);
    sr_exchanges_free(&e->exchanges);
    e->exchanges = (sr_exchanges){0};
    sr_conn_free(c);
}

static void forwarded(void)
{
    static const char all[] = "X-Forwarded-For: [2001:db8::7]:99, 10.0.0.2\r\nX-Forwarded-Proto: https\r\n"
                              "X-Forwarded-Host: b\r\nX-Forwarded-Port: 8443\r\n"
                              "Forwarded: for=192.0.2.9;proto=http;host=c\r\n";
    sr_engine *e = engine("10.0.0.0/8,unix", false);
    is_forwarded(e, "192.0.2.7", all, "192.0.2.7 0");
    is_forwarded(e, "10.0.0.1", all, "2001:db8::7 99 https - 0");
    e->config.x_forwarded_port = true;
    is_forwarded(e, "10.0.0.1", all, "2001:db8::7 99 https - 8443");
    is_forwarded(e, "unix", all, "2001:db8::7 99 https - 8443");
    is_forwarded(e, "10.0.0.1", "", "10.0.0.1 0");
    is_forwarded(e, "10.0.0.1", "X-Forwarded-For: 192.0.2.9\r\n", "192.0.2.9 0");
    is_forwarded(e, "10.0.0.1", "X-Forwarded-For: 192.0.2.9, x, 10.0.0.2:5\r\n", "10.0.0.2 5");
    is_forwarded(e, "10.0.0.1", "X-Forwarded-Host: b\r\n", "10.0.0.1 0");
    e->config.x_forwarded_host = true;
    is_forwarded(e, "10.0.0.1", all, "2001:db8::7 99 https b 8443");
    e = engine("10.0.0.0/8", false);
    e->config.forwarded = SR_FORWARDED_RFC7239;
    is_forwarded(e, "10.0.0.1", all, "192.0.2.9 0 http c 0");
    is_forwarded(e, "unix", all, "127.0.0.1 0");
}

int main(void)
{
    welcome();
    proxy_header();
    forwarded();
    return done_testing();
}
