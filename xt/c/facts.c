/* facts: what sr_request says of the heads it takes. */
#include "../../src/http/target.h"
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
    ok(r.has_query && !r.is_head && r.version == SR_HTTP_1_1 && r.keep_alive && !r.upgrade, "flags");
    is_int(r.head_start, 2, "head_start behind the empty line");
    is_int(r.head_len, (long long)strlen(at), "head_len counts it");
    is_int(r.n_fields, 2, "n_fields");
    is_span(at, r.fields[1].name, "Content-Type", "name of a field");
    is_span(at, r.fields[1].value, "a/b", "value of a field without OWS");

    at = take("HEAD /? HTTP/1.0\r\n\r\n");
    ok(r.is_head && r.has_query && r.query.len == 0, "HEAD, and a query that is empty");
    ok(r.version == SR_HTTP_1_0 && !r.keep_alive && r.host.len == 0 && r.content_type.len == 0,
       "1.0 without fields");
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
    at = take("GET http://b:81/ HTTP/1.1\r\nX: 1\r\nHOST: a\r\n\r\n");
    is_span(at, r.host, "b:81", "another authority than Host: it replaces Host");
    is_span(at, r.fields[1].value, "b:81", "for the application as well");
    is_span(at, r.fields[1].name, "HOST", "in its place");
    ok(!r.host_added, "there is a field that says it");
    at = take("GET http://b/ HTTP/1.0\r\n\r\n");
    ok(r.host_added && r.n_fields == 0, "absolute-form of HTTP/1.0 without Host: no field says it");
    is_span(at, r.host, "b", "but it is the host");
    take("GET / HTTP/1.0\r\n\r\n");
    ok(!r.host_added, "no host at all");
    at = take("patch /\xc3\xa9%\x41\x41?\xff HTTP/1.1\r\nHost: a\r\n\r\n");
    is_span(at, r.method, "patch", "a method as it came");
    is_span(at, r.path, "/\xc3\xa9%\x41\x41", "8-bit bytes of the path as they came");
    is_span(at, r.query, "\xff", "those of the query, too");
    take("head / HTTP/1.1\r\nHost: a\r\n\r\n");
    ok(!r.is_head, "head is not HEAD");
    take("GET / HTTP/1.9\r\nHost: a\r\n\r\n");
    is_int(r.version, SR_HTTP_1_1, "1.9 counts as 1.1");
}

/* The names that are left of these fields, with spaces behind; limits.underscores is on. */
static const char *names(const char *fields)
{
    static const sr_request_limits limits = {.line = 8192, .head = 65536, .fields = 100, .underscores = true};
    static char head[4096], left[4096];
    sr_parse p;
    size_t n = 0, len = (size_t)snprintf(head, sizeof head, "GET / HTTP/1.0\r\n%s\r\n", fields);
    bool agree = splits_agree(&r, &p, &limits, head, len);
    if (!agree || p != SR_PARSE_DONE)
        return agree && p == SR_PARSE_BAD ? "refused" : "splits differ";
    for (uint32_t i = 0; i < r.n_fields; i++)
        n += (size_t)snprintf(left + n, sizeof left - n, "%.*s=%.*s ", (int)r.fields[i].name.len,
                              head + r.fields[i].name.at, (int)r.fields[i].value.len,
                              head + r.fields[i].value.at);
    left[n] = 0;
    return left;
}

static void underscores(void)
{
    static const struct {
        const char *fields, *left;
    } cases[] = {
        {"X_Foo: 1\r\n", "X_Foo=1 "},
        {"_: 1\r\n__a: 2\r\n", "_=1 __a=2 "},
        {"X_Foo: 1\r\nX-Foo: 2\r\n", "X-Foo=2 "},
        {"X-Foo: 1\r\nX_Foo: 2\r\n", "X-Foo=1 "},
        {"x_foo: 1\r\nX-FOO: 2\r\nX_FOO: 3\r\nX-Foo: 4\r\n", "X-FOO=2 X-Foo=4 "},
        {"X_Foo: 1\r\nx_foo: 2\r\n", "X_Foo=1 x_foo=2 "},
        {"A-B_C: 1\r\nA_B-C: 2\r\n", ""},
        {"A-B_C: 1\r\nA_B-C: 2\r\nA_B_C: 3\r\nD_E: 4\r\n", "D_E=4 "},
        {"A-B_C: 1\r\nA_B-C: 2\r\nA-B-C: 3\r\n", "A-B-C=3 "},
        {"Remote_User: a\r\nRemote_Use: b\r\nRemote_Userx: c\r\n",
         "Remote_User=a Remote_Use=b Remote_Userx=c "},
        {"Content_Type: a\r\ncontent_TYPE: b\r\nContent_Typex: c\r\n", "Content_Typex=c "},
        {"X_Forwarded_For: 1\r\nX-Forwarded_Proto: 2\r\nX_Forwarded-: 3\r\nX_Forwarde: 4\r\n",
         "X_Forwarde=4 "},
        {"X_Real_IP: 1\r\nX_Real-IP: 2\r\nX_Real_IPs: 3\r\n", "X_Real_IPs=3 "},
        {"Proxy: 1\r\nProxy_: 2\r\n", "Proxy_=2 "},
        {"Content_Length: 1\r\n", "refused"},
        {"Transfer_encoding: 1\r\n", "refused"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *left = names(cases[i].fields);
        if (!ok(strcmp(left, cases[i].left) == 0, "underscores kept: '%s'", cases[i].left))
            printf("# got '%s'\n", left);
    }
    take("GET / HTTP/1.1\r\nHost: a\r\nX_Foo: 1\r\n\r\n");
    is_int(r.n_fields, 1, "not kept: dropped");
}

static void framing(void)
{
    take("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    is_int(r.framing, SR_BODY_NONE, "no body");
    take("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    ok(r.framing == SR_BODY_LENGTH && r.content_length == 0, "Content-Length: 0");
    take("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n");
    ok(r.framing == SR_BODY_LENGTH && r.content_length == INT64_MAX, "the largest");
    take("GET / HTTP/1.1\r\nHost: a\r\nContent-Length:\t \t12  \t\r\n\r\n");
    ok(r.framing == SR_BODY_LENGTH && r.content_length == 12, "OWS around it");
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
    underscores();
    framing();
    connections();
    dropped();
    decode();
    return done_testing();
}
