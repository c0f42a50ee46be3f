/* request_limits: long lines, heads and names; many fields. The smallest offset decides, in every split. */
#include "feed.h"

static char head[200000];
static size_t len;

static void put(const char *s)
{
    memcpy(head + len, s, strlen(s));
    len += strlen(s);
}
static void fill(char c, size_t count)
{
    memset(head + len, c, count);
    len += count;
}

/* `want`: a status, 0 for DONE, -1 for MORE */
static void is_answer(const sr_request_limits *limits, int want, const char *name)
{
    static sr_request r;
    sr_parse p;
    bool agree = splits_agree(&r, &p, limits, head, len);
    int got = p == SR_PARSE_BAD ? r.status : p == SR_PARSE_DONE ? 0 : -1;
    if (!ok(agree && got == want, "%s: %d", name, want))
        printf("# got %d (%s), splits %s\n", got, r.why ? r.why : "", agree ? "agree" : "differ");
    len = 0;
}

static const sr_request_limits small = {.line = 100, .head = 200, .fields = 4};

/* A request line of `size` bytes with CR or junk in it. */
static void line_of(size_t size, const char *end)
{
    put("GET /");
    fill('a', size - strlen("GET / HTTP/1.1"));
    put(" HTTP/1.1");
    put(end);
}

static void request_line(void)
{
    line_of(100, "\r\nHost: a\r\n\r\n");
    is_answer(&small, 0, "a request line at the limit");
    line_of(101, "\r\nHost: a\r\n\r\n");
    is_answer(&small, 414, "one byte more");
    line_of(100, "\r");
    is_answer(&small, -1, "a CR at the limit may end it");
    line_of(100, "\rx");
    is_answer(&small, 400, "or not");
    line_of(100, "\r\r\n");
    is_answer(&small, 400, "CR CR LF at the limit");
    line_of(100, "xx\r");
    is_answer(&small, 414, "CR behind the limit");
    line_of(101, "\rx\r\n");
    is_answer(&small, 414, "a bare CR behind the limit");
    line_of(100, "\n");
    is_answer(&small, 400, "a bare LF at the limit");
    line_of(101, "\n");
    is_answer(&small, 414, "a bare LF behind the limit");
    line_of(100, "");
    is_answer(&small, -1, "no end at the limit");
    line_of(101, "");
    is_answer(&small, 414, "no end behind the limit");
    put("GET /a\rb");
    fill('a', 300);
    is_answer(&small, 400, "a bare CR before the limit");
    put("\r\n");
    line_of(100, "\r\nHost: a\r\n\r\n");
    is_answer(&small, 0, "an empty line before does not count");
    fill('A', 65);
    fill('a', 100);
    is_answer(&small, 400, "a method past the limit is 400");
    fill('A', 80);
    put("\rx");
    is_answer(&small, 400, "and a bare CR in it");
    fill('A', 60);
    put("\rx\r\n");
    is_answer(&small, 400, "a bare CR in a method");
    fill('A', 100);
    is_answer(&(sr_request_limits){.line = 40, .head = 200, .fields = 4}, 414,
              "a line limit below that of methods comes first");
    line_of(100, "\r\nHost: a\r\n\r\n");
    is_answer(&(sr_request_limits){.line = 200, .head = 90, .fields = 4}, 414,
              "a line past the limit of the head");
    line_of(100, "\r\n\r\n");
    is_answer(&(sr_request_limits){.line = 200, .head = 100, .fields = 4}, 431,
              "a line at the limit of the head");
}

static void whole_head(void)
{
    static const char start[] = "GET / HTTP/1.1\r\nHost: a\r\nA: "; /* 28 bytes */
    for (int more = 0; more < 2; more++) {
        put(start);
        fill('b', 200 - 4 - (sizeof start - 1) + (size_t)more);
        put("\r\n\r\n");
        is_answer(&small, more ? 431 : 0, more ? "one byte more" : "a head at the limit");
    }
    put(start);
    fill('b', 172);
    is_answer(&small, 431, "no end, at the limit");
    put(start);
    fill('b', 171);
    is_answer(&small, -1, "no end, one byte less");
    put(start);
    fill('b', 170);
    put("\rb");
    is_answer(&small, 400, "a bare CR at the limit");
    put(start);
    fill('b', 171);
    put("\rb\r\n\r\n");
    is_answer(&small, 431, "a bare CR behind the limit");
    put(start);
    fill('b', 168);
    put("\n\r\n");
    is_answer(&small, 400, "a bare LF before the limit");
    put(start);
    fill('b', 167);
    put("\r\nC: d\r\n\r\n");
    is_answer(&small, 431, "a line that starts before the limit");
    put(start);
    fill('b', 170);
    put("\r\n:");
    is_answer(&small, 431, "bad content behind the limit does not matter");
    put("GET / HTTP/1.1\r\n");
    for (int i = 0; i < 1000; i++)
        put("A: b\r\n");
    is_answer(&small, 431, "S42 fields without end");
}

static void fields(void)
{
    for (int more = 0; more < 3; more++) {
        put("GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nA: b\r\n");
        put(more ? "A_: b\r\nProxy: b\r\n" : "A: b\r\n");
        put("\r\n");
        is_answer(&small, more ? 431 : 0, more ? "dropped ones count" : "as many fields as allowed");
    }
    put("GET / HTTP/1.1\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\nx");
    is_answer(&small, 431, "the first byte of one too many");
    put("GET / HTTP/1.1\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\rx\r\n");
    is_answer(&small, 400, "a bare CR in its place");
    put("GET / HTTP/1.1\r\nA: b\r\nA: b\r\nA: b\r\nA: b\r\n\n");
    is_answer(&small, 400, "a bare LF in its place");
    put("GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 255; i++)
        put("A: b\r\n");
    put("\r\n");
    is_answer(&(sr_request_limits){.line = 100, .head = 9000, .fields = 1000}, 0, "256 fields");
    put("GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 256; i++)
        put("A: b\r\n");
    put("\r\n");
    is_answer(&(sr_request_limits){.line = 100, .head = 9000, .fields = 1000}, 431, "never more");
    for (size_t more = 0; more < 2; more++) {
        put("GET / HTTP/1.1\r\nHost: a\r\n");
        fill('N', 1024 + more);
        put(": a\r\n\r\n");
        is_answer(&feed_limits, more ? 431 : 0, more ? "S42 one byte more" : "a name of 1024 bytes");
    }
    put("GET / HTTP/1.1\r\nHost: a\r\n");
    fill('N', 1025);
    put(": a\rb\r\n\r\n");
    is_answer(&feed_limits, 400, "a bare CR behind a long name");
}

/* The long rows of Http11Probe. */
static void probes(void)
{
    put("GET /");
    fill('a', 7900);
    put(" HTTP/1.1\r\nHost: a\r\n\r\n");
    is_answer(&feed_limits, 0, "COMP-LONG-URL-OK");
    put("GET /");
    fill('A', 100000);
    put(" HTTP/1.1\r\nHost: a\r\n\r\n");
    is_answer(&feed_limits, 414, "MAL-LONG-URL");
    put("GET / HTTP/1.1\r\nHost: a\r\nX-Big: ");
    fill('B', 100000);
    put("\r\n\r\n");
    is_answer(&feed_limits, 431, "MAL-LONG-HEADER-VALUE");
    put("GET / HTTP/1.1\r\nHost: a\r\n");
    fill('A', 100000);
    put(": a\r\n\r\n");
    is_answer(&feed_limits, 431, "MAL-LONG-HEADER-NAME");
    fill('A', 100000);
    put(" / HTTP/1.1\r\nHost: a\r\n\r\n");
    is_answer(&feed_limits, 400, "MAL-LONG-METHOD");
    put("GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < 10000; i++)
        put("X-H-0: value\r\n");
    put("\r\n");
    is_answer(&feed_limits, 431, "MAL-MANY-HEADERS");
    put("GET / HTTP/1.1\r\nHost: a\r\nCookie: big=");
    fill('A', 65536);
    put("\r\n\r\n");
    is_answer(&feed_limits, 431, "COOK-OVERSIZED");
    put("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0");
    fill('2', 200);
    put("\r\n\r\n");
    is_answer(&feed_limits, 400, "SMUG-CL-LEADING-ZEROS-OCTAL");
}

int main(void)
{
    request_line();
    whole_head();
    fields();
    probes();
    return done_testing();
}
