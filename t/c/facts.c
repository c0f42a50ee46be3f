/* facts: what sr_request says of the heads it takes. */
#include "feed.h"

static sr_request r;

static const char *take(const char *head)
{
    static char copy[4096];
    size_t len = strlen(head);
    memcpy(copy, head, len + 1);
    sr_parse p;
    bool agree = splits_agree(&r, &p, &feed_limits, copy, len);
    if (!agree || p != SR_PARSE_DONE)
        ok(false, "taken: %s", head);
    return copy;
}

static void is_span(const char *at, sr_span s, const char *want, const char *name)
{
    is_bytes(at + s.at, s.len, want, name);
}

static void targets(void)
{
    const char *at = take("\r\nPOST /a%20b?c=d HTTP/1.1\r\nHost: A:80\r\nContent-Type:  a/b \r\n\r\n");
    is_span(at, r.method, "POST", "method");
    is_span(at, r.target, "/a%20b?c=d", "target");
    is_span(at, r.path, "/a%20b", "path");
    is_span(at, r.query, "c=d", "query");
    is_span(at, r.host, "A:80", "host");
    is_span(at, r.content_type, "a/b", "content_type without OWS");
    ok(r.has_query && !r.is_head && r.minor == 1 && r.keep_alive && !r.upgrade, "flags");
    is_int(r.head_start, 2, "head_start behind the empty line");
    is_int(r.head_len, (long long)strlen(at), "head_len counts it");
    is_int(r.n_fields, 2, "n_fields");
    is_span(at, r.fields[1].name, "Content-Type", "name of a field");
    is_span(at, r.fields[1].value, "a/b", "value of a field without OWS");

    at = take("HEAD /? HTTP/1.0\r\n\r\n");
    ok(r.is_head && r.has_query && r.query.len == 0, "HEAD, and a query that is empty");
    ok(r.minor == 0 && !r.keep_alive && r.host.len == 0 && r.content_type.len == 0, "1.0 without fields");
    at = take("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    is_span(at, r.path, "*", "path of '*'");
    ok(!r.has_query, "no query");
    at = take("GET http://A:80/b?c HTTP/1.1\r\nHost: a\r\n\r\n");
    is_span(at, r.host, "A:80", "absolute-form: host is the authority");
    is_span(at, r.path, "/b", "its path");
    is_span(at, r.query, "c", "its query");
    at = take("GET https://[::1]?x HTTP/1.1\r\nHost: [::1]:443\r\n\r\n");
    is_span(at, r.host, "[::1]", "without a path: host");
    is_span(at, r.path, "", "path is empty");
    is_span(at, r.query, "x", "query");
    take("GET / HTTP/1.9\r\nHost: a\r\n\r\n");
    is_int(r.minor, 1, "1.9 counts as 1.1");
}

static void framing(void)
{
    take("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    is_int(r.framing, SR_BODY_NONE, "no body");
    take("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    ok(r.framing == SR_BODY_LENGTH && r.content_length == 0, "Content-Length: 0");
    take("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n");
    ok(r.framing == SR_BODY_LENGTH && r.content_length == INT64_MAX, "the largest");
    take("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n");
    is_int(r.framing, SR_BODY_CHUNKED, "chunked");
    is_int(r.n_fields, 2, "the field is kept");
    take("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-CONTINUE\r\n\r\n");
    is_int(r.expect, SR_EXPECT_CONTINUE, "100-continue");
    take("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
    is_int(r.expect, SR_EXPECT_NONE, "not in 1.0");
}

static void connections(void)
{
    static const struct {
        const char *fields;
        bool minor, keep_alive, upgrade;
    } cases[] = {
        {"Connection: close\r\n", 1, false, false},
        {"Connection: CLOSE\r\n", 1, false, false},
        {"Connection: keep-alive, close\r\n", 1, false, false}, /* S49 */
        {"Connection: close, TE\r\n", 1, false, false},
        {"Connection: a ,\tclose ,\r\n", 1, false, false},
        {"Connection: close\r\nConnection: keep-alive\r\n", 1, false, false},
        {"Connection: keep-alive\r\nConnection: close\r\n", 1, false, false},
        {"Connection: closed\r\n", 1, true, false},
        {"Connection: \"close\"\r\n", 1, true, false},
        {"Connection:\r\n", 1, true, false},
        {"Connection: Keep-Alive\r\n", 0, true, false},
        {"Connection: TE, keep-alive\r\n", 0, true, false},
        {"Connection: close, keep-alive\r\n", 0, false, false},
        {"Connection: x\r\n", 0, false, false},
        {"Connection: Upgrade, keep-alive\r\nUpgrade: h2c\r\n", 1, true, true}, /* S49 */
        {"Connection: Upgrade\r\n", 1, true, false},
        {"Upgrade: h2c\r\n", 1, true, false},
        {"Connection: Upgrade\r\nUpgrade: a, WebSocket\r\nSec-WebSocket-Version: 13\r\n", 1, true, true},
        {"Connection: Upgrade, keep-alive\r\nUpgrade: websocket\r\n", 0, true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char head[200];
        snprintf(head, sizeof head, "GET / HTTP/1.%d\r\nHost: a\r\n%s\r\n", cases[i].minor, cases[i].fields);
        take(head);
        if (!ok(r.keep_alive == cases[i].keep_alive && r.upgrade == cases[i].upgrade, "connection %zu", i))
            printf("# %s", cases[i].fields);
    }
}

static void dropped(void)
{
    const char *at = take("GET / HTTP/1.1\r\nX_Forwarded_For: 6.6.6.6\r\nHost: a\r\nProxy: b\r\n"
                          "X-Forwarded-For: 1.1.1.1\r\nPROXY: b\r\nhos_: c\r\n\r\n");
    is_int(r.n_fields, 2, "S43 names with '_' and Proxy are dropped");
    is_span(at, r.fields[0].name, "Host", "what stays: Host");
    is_span(at, r.fields[1].value, "1.1.1.1", "and the field with '-'");
    is_span(at, r.host, "a", "Host is not touched");
}

static void decode(void)
{
    static const struct {
        const char *path, *want;
    } cases[] = {
        {"/", "/"},         {"", ""},        {"/a%20b%2Fc%2f", "/a b/c/"}, {"%e2%82%AC", "\xe2\x82\xac"},
        {"/%2500", "/%00"}, {"/a+b", "/a+b"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64];
        size_t len = strlen(cases[i].path);
        size_t n = sr_path_decode(out, sr_bytes_of(guarded(cases[i].path, len), len));
        is_bytes(out, n, cases[i].want, cases[i].path);
    }
}

int main(void)
{
    targets();
    framing();
    connections();
    dropped();
    decode();
    return done_testing();
}
