/* opening: requests that ask for a WebSocket, and the example of RFC 6455 1.3. */
#include "../../src/websocket/opening.h"
#include "../../src/http1/head.h"
#include "guard.h"
#include "tap.h"

static sr_request r;
static const char *base;

static void head(const char *text)
{
    sr_request_limits limits = {8192, 65536, 100, false};
    size_t len = strlen(text);
    base = guarded(text, len);
    sr_request_init(&r);
    ok(sr_request_feed(&r, &limits, base, len) == SR_PARSE_DONE, "a request");
}

#define ASKS "GET /chat HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"

static void status(const char *text, int want, const char *name)
{
    sr_opening o;
    head(text);
    ok(sr_opening_asks(&r, base), "%s: asks", name);
    sr_opening_check(&o, &r, base);
    is_int(o.status, want, name);
    ok(!want == !o.why, "and says why if it is refused");
}

static void asks(const char *text, bool want, const char *name)
{
    head(text);
    ok(sr_opening_asks(&r, base) == want, "%s", name);
}

static void is_own(const char *origin, const char *host, bool is_https, bool want)
{
    char text[512];
    snprintf(text, sizeof text, ASKS "%s\r\n", origin);
    head(text);
    ok(sr_opening_is_own(&r, base, is_https, sr_bytes_of(host, strlen(host))) == want, "%s at %s", origin,
       host);
}

static void origins(void)
{
    is_own("", "a", false, true);
    is_own("Origin: http://a\r\n", "a", false, true);
    is_own("Origin: http://A:80\r\n", "a", false, true);
    is_own("Origin: http://a\r\n", "a:80", false, true);
    is_own("Origin: https://a\r\n", "a:443", true, true);
    is_own("Origin: http://[::1]:81\r\n", "[::1]:81", false, true);
    is_own("Origin: https://a\r\n", "a", false, false);
    is_own("Origin: http://a\r\n", "a", true, false);
    is_own("Origin: http://a:81\r\n", "a", false, false);
    is_own("Origin: http://b\r\n", "a", false, false);
    is_own("Origin: http://a.b\r\n", "a", false, false);
    is_own("Origin: http://a/\r\n", "a", false, false);
    is_own("Origin: http://\r\n", "a", false, false);
    is_own("Origin: null\r\n", "a", false, false);
    is_own("Origin:\r\n", "a", false, false);
    is_own("Origin: http://a\r\nOrigin: http://a\r\n", "a", false, false);
    is_own("Origin: http://a\r\n", "", false, false);
}

int main(void)
{
    sr_opening o;
    char accept[SR_OPENING_ACCEPT];
    origins();
    head(ASKS KEY VERSION "Sec-WebSocket-Protocol: chat, superchat\r\n\r\n");
    sr_opening_check(&o, &r, base);
    ok(!o.status, "subprotocols");
    sr_opening_accept(accept, o.key);
    is_bytes(accept, sizeof accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "Sec-WebSocket-Accept");

    status(ASKS KEY VERSION "\r\n", 0, "all that is needed");
    status(ASKS KEY "\r\n", 426, "no version");
    status(ASKS KEY VERSION VERSION "\r\n", 426, "two versions");
    status(ASKS VERSION "\r\n", 400, "no key");
    status(ASKS KEY KEY VERSION "\r\n", 400, "two keys");
    status(ASKS VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n\r\n", 400, "a key without padding");
    status(ASKS VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSE=\r\n\r\n", 400, "a key of 17 bytes");
    status(ASKS KEY VERSION "Content-Length: 1\r\n\r\n", 400, "a body");
    status(ASKS KEY VERSION "Content-Length: 0\r\n\r\n", 0, "an empty body");

    asks("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\n\r\n", true,
         "in any case");
    asks("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c, websocket\r\nConnection: upgrade\r\n\r\n", true,
         "among others");
    asks("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n", false, "without Connection");
    asks("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n", false,
         "another protocol");
    asks("POST / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", false,
         "another method");
    asks("GET / HTTP/1.0\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", false, "HTTP/1.0");

    head("GET /chat HTTP/1.1\r\nHost: a\r\n" VERSION "\r\n");
    r.extended = true;
    sr_opening_check(&o, &r, base);
    is_int(o.status, 0, "extended CONNECT needs no key");
    head("GET /chat HTTP/1.1\r\nHost: a\r\n\r\n");
    r.extended = true;
    sr_opening_check(&o, &r, base);
    is_int(o.status, 426, "but a version");
    return done_testing();
}
