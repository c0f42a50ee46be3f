/* logformat: what a format may be, early and late are the whole, values of any size and kind. */
#include "../../src/http/response.h"
#include "../../src/log/format.h"

#include <stdlib.h>

#include "guard.h"
#include "tap.h"

/* --- a source whose values are told by the kind --- */

typedef struct values {
    const char *at[SR_LOG_TEXT];
    size_t len[SR_LOG_TEXT];
} values;

static sr_bytes value(void *ctx, const sr_logitem *item)
{
    const values *v = ctx;
    if (item->kind == SR_LOG_IN || item->kind == SR_LOG_CUSTOM)
        return item->name;
    return v->at[item->kind] ? sr_bytes_of(guarded(v->at[item->kind], v->len[item->kind]), v->len[item->kind])
                             : sr_bytes_of(NULL, 0);
}

static values request(void)
{
    values v = {.at = {[SR_LOG_REMOTE_ADDR] = "127.0.0.1",
                       [SR_LOG_REQUEST_LINE] = "GET /a?b=c HTTP/1.1",
                       [SR_LOG_METHOD] = "GET",
                       [SR_LOG_URI] = "/a?b=c",
                       [SR_LOG_PROTOCOL] = "HTTP/1.1",
                       [SR_LOG_PATH] = "/a",
                       [SR_LOG_QUERY] = "b=c",
                       [SR_LOG_SERVER_NAME] = "localhost",
                       [SR_LOG_HOST] = "example.com",
                       [SR_LOG_PORT] = "80",
                       [SR_LOG_OUT] = "\"out\"",
                       [SR_LOG_REQUEST_ID] = "shop-1",
                       [SR_LOG_REFUSED] = "no Host",
                       [SR_LOG_REFUSED_BY] = "malformed",
                       [SR_LOG_ENV] = ""}};
    for (int i = 0; i < SR_LOG_TEXT; i++)
        v.len[i] = v.at[i] ? strlen(v.at[i]) : 0;
    return v;
}

static const sr_logoutcome nothing = {.body_bytes = SR_LOG_BYTES_UNKNOWN,
                                      .held_ns = -1,
                                      .bytes = SR_LOG_BYTES_UNKNOWN,
                                      .total_ns = -1,
                                      .queue_ns = -1,
                                      .app_ns = -1,
                                      .nth = SR_LOG_NTH_UNKNOWN};
static const sr_logoutcome all = {.status = 200,
                                  .held_ns = -1,
                                  .body_bytes = 1234,
                                  .bytes = 1400,
                                  .total_ns = 2345678901,
                                  .queue_ns = 12345,
                                  .app_ns = 999,
                                  .kept = true,
                                  .nth = 7,
                                  .stream = 5};

static sr_logformat *compiled(const char *format, size_t len)
{
    static const sr_logletters own = {.chars = "zh", .blocks = "zti"};
    sr_logformat_error err;
    sr_logformat *f = sr_logformat_new(guarded(format, len), len, &own, &err);
    if (!f)
        printf("# %s at %zu\n", err.message, err.offset);
    return f;
}

/* The line in one go and in two, which are the same; into out */
static bool line(const char *format, values *v, const sr_logoutcome *outcome, sr_buffer *out)
{
    sr_logformat *f = compiled(format, strlen(format));
    sr_logsource source = {.ctx = v, .get = value, .wall = 1700000000123456789, .pid = 4711};
    sr_buffer pieces = {0}, split = {0};
    if (!f)
        return false;
    sr_buffer_add(&pieces, "before", 6); /* both append */
    sr_buffer_add(&split, "before", 6);
    sr_buffer_reset(out);
    bool done = sr_logformat_line(f, &source, outcome, out) && sr_logformat_early(f, &source, &pieces);
    if (done) {
        size_t len = sr_buffer_len(&pieces) - 6;
        sr_bytes bytes = sr_bytes_of(guarded(sr_buffer_at(&pieces) + 6, len), len);
        done = sr_logformat_late(f, bytes, outcome, &split) &&
               sr_buffer_len(&split) == sr_buffer_len(out) + 6 &&
               !memcmp(sr_buffer_at(&split) + 6, sr_buffer_at(out), sr_buffer_len(out));
    }
    sr_buffer_free(&pieces);
    sr_buffer_free(&split);
    sr_logformat_free(f);
    return done;
}

static void is_line(const char *format, const sr_logoutcome *outcome, const char *want)
{
    sr_buffer out = {0};
    values v = request();
    ok(line(format, &v, outcome, &out), "%s: early and late are the whole", format);
    is_bytes(sr_buffer_at(&out), sr_buffer_len(&out) - 1, want, format);
    sr_buffer_free(&out);
}

static void is_wrong(const char *format, size_t offset, const char *message)
{
    static const sr_logletters own = {.chars = "z", .blocks = "z"};
    sr_logformat_error err = {{0}, 0};
    size_t len = strlen(format);
    sr_logformat *f = sr_logformat_new(guarded(format, len), len, &own, &err);
    ok(!f && err.offset == offset && !strcmp(err.message, message), "%s at %zu", message, offset);
    if (f || err.offset != offset || strcmp(err.message, message))
        printf("# %s at %zu\n", f ? "none" : err.message, err.offset);
    sr_logformat_free(f);
}

static void errors(void)
{
    is_wrong("", 0, "the format is empty");
    is_wrong("%h %Z", 3, "unknown item %Z");
    is_wrong("%h %>Z", 3, "unknown item %Z");
    is_wrong("%{a}Z", 0, "unknown item %{...}Z");
    is_wrong("a%{", 1, "%{ without } and a letter");
    is_wrong("a%{b", 1, "%{ without } and a letter");
    is_wrong("a%{b}", 1, "%{ without } and a letter");
    is_wrong("a%{b}-", 1, "%{ without } and a letter");
    is_wrong("a%{b\n}i", 1, "%{ without } and a letter");
    is_wrong("%{}i", 0, "%{}i without a name");
    is_wrong("%h%{a}-%{b}i", 5, "} without a letter after it");
    is_wrong("%h %>", 3, "%> without a letter");
    is_wrong("%<{a}i", 0, "%< without a letter");
    is_wrong("%400,501{Referer}i", 0, "conditions on the status are not supported; %% is a percent sign");
    is_wrong("100 %!200s", 4, "conditions on the status are not supported; %% is a percent sign");
    is_wrong("%{hours}T", 0, "unknown name in %{...}T");
    is_wrong("%{x}D", 0, "unknown name in %{...}D");
    is_wrong("%{x}r", 0, "unknown name in %{...}r");
    is_wrong("%t %{%Y %f}t", 8, "unknown time conversion: %f");
    is_wrong("%{%}t", 2, "unknown time conversion: %");
    is_wrong("%{%E}t", 2, "unknown time conversion: %E");
    is_wrong("%{%-d}t", 2, "unknown time conversion: %-");
    is_wrong("%{%N %3N}t", 5, "repeated time conversion: %3N");
}

static void items(void)
{
    is_line("%{request-id}x %{traceparent}x", &all, "shop-1 -");
    is_line("%s \"%{refused}x\"", &all, "200 \"no Host\"");
    is_line("%k %{stream}x", &all, "7 5");
    is_line("%{stream}x", &nothing, "-");
    is_line("%{held}D %{messages}x", &nothing, "- -");
    sr_logoutcome held = all;
    held.held_ns = 1500000;
    held.messages = 3;
    is_line("%{held}D %{messages}x", &held, "1500 3");
    is_line("%h %a %l %u|%r|%m|%{uri}r|%H", &all,
            "127.0.0.1 127.0.0.1 - -|GET /a?b=c HTTP/1.1|GET|/a?b=c|HTTP/1.1");
    is_line("%U%q %v %V %p %P", &all, "/a?b=c localhost example.com 80 4711");
    is_line("%{Name}i %{x}o %{x}e", &all, "Name \"out\" -");
    is_line("%s %>s %b %B %O %D %T %X %k", &all, "200 200 1234 1234 1400 2345678 2 + 7");
    is_line("%{s}T %{ms}T %{us}T %{queue}D %{app}D", &all, "2 2345 2345678 12 0");
    is_line("%s %b %B %O %D %T %X %k %{queue}D", &nothing, "- - 0 - - - - - -");
    is_line("%z %{it}z", &all, "- it");
    is_line("%h %{%Y}t %{i}i", &all, "127.0.0.1 [2023] i"); /* h, t and i are not the embedder's to change */
    is_line("plain", &all, "plain");
    is_line("100%% % %- \\ \\\\ %", &all, "100% % %- \\ \\ %");
    is_line("%s%s %% %l%b", &all, "200200 % -1234");
    is_line("%D", &all, "2345678");
    is_line("[%{100%% {of} %Y}t]", &all, "[[100% {of} 2023]]");
    sr_logoutcome cut = all;
    is_line("%{cut-by}x", &cut, "-");
    cut.aborted = cut.broken = true;
    is_line("%{cut-by}x", &cut, "server");
    cut.broken = false;
    is_line("%{cut-by}x", &cut, "client");
    is_line(
        "ltsv", &cut,
        "time:[14/Nov/2023:22:13:20 +0000]\thost:127.0.0.1\tuser:-\tmethod:GET\turi:/a?b=c\t"
        "protocol:HTTP/1.1\tstatus:200\tsize:1234\treferer:Referer\tua:User-Agent\tvhost:example.com\t"
        "reqtime_microsec:2345678\tqueuetime_microsec:12\tapptime_microsec:0\tconnection:X\tnth:7\tpid:4711");
}

static void presets(void)
{
    is_line("common", &all, "127.0.0.1 - - [14/Nov/2023:22:13:20 +0000] \"GET /a?b=c HTTP/1.1\" 200 1234");
    is_line("json", &nothing,
            "{\"time\":\"2023-11-14T22:13:20.123456+00:00\",\"host\":\"127.0.0.1\",\"user\":null,"
            "\"method\":\"GET\",\"uri\":\"/a?b=c\",\"protocol\":\"HTTP/1.1\",\"status\":null,\"size\":null,"
            "\"referer\":\"Referer\",\"ua\":\"User-Agent\",\"vhost\":\"example.com\","
            "\"reqtime_microsec\":null,\"queuetime_microsec\":null,\"apptime_microsec\":null,"
            "\"connection\":\"-\",\"nth\":null,\"pid\":4711}");
}

/* --- early and late --- */

static void random_lines(void)
{
    static const char *const parts[] = {
        "%h", "%r", "%U", "%q", "%t", "%P",   "%s",       "%b",    "%D",        "%{queue}D", "%X", "%k",
        "%O", " ",  "\"", "%%", "%l", "text", "%{Name}i", "%{a}o", "%{%s.%N}t", "%{x}z",     "%B", "%u"};
    static char bytes[5000];
    sr_buffer out = {0};
    bool same = true;
    unsigned seed = 20261122;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)rand_r(&seed);
    for (int round = 0; round < 4000 && same; round++) {
        char format[512] = "";
        for (int n = 1 + rand_r(&seed) % 20; n > 0; n--)
            strcat(format, parts[(size_t)rand_r(&seed) % (sizeof parts / sizeof *parts)]);
        values v = request();
        for (int i = 0; i < SR_LOG_TEXT; i++)
            if (rand_r(&seed) % 2) {
                v.at[i] = bytes;
                v.len[i] = (size_t)rand_r(&seed) % (rand_r(&seed) % 8 ? 20 : sizeof bytes);
            }
        sr_logoutcome outcome = rand_r(&seed) % 2 ? all : nothing;
        outcome.total_ns = rand_r(&seed);
        outcome.status = rand_r(&seed) % 1000;
        outcome.aborted = rand_r(&seed) % 2;
        same = line(format, &v, &outcome, &out);
        for (size_t i = 0; same && i + 1 < sr_buffer_len(&out); i++)
            same = sr_buffer_at(&out)[i] >= 0x20 && sr_buffer_at(&out)[i] < 0x7f;
        if (!same)
            printf("# %s\n", format);
    }
    ok(same, "4000 random formats: early and late are the whole, and all is printable");
    sr_buffer_free(&out);
}

static void long_values(void)
{
    size_t len = GUARD_MAX / 8;
    char *text = malloc(len);
    sr_buffer out = {0};
    values v = request();
    memset(text, 'x', len);
    v.at[SR_LOG_URI] = text;
    v.len[SR_LOG_URI] = len;
    ok(line("%s %{uri}r %s", &v, &all, &out) && sr_buffer_len(&out) == len + 9, "many kilobytes");
    memset(text, 0, len);
    ok(line("%s %{uri}r %s", &v, &all, &out) && sr_buffer_len(&out) == 4 * len + 9, "of bytes to be escaped");
    sr_buffer_free(&out);
    free(text);

    char *format = malloc(100001);
    for (size_t i = 0; i < 50000; i++)
        memcpy(format + 2 * i, "%s", 2);
    format[100000] = 0;
    v = request();
    ok(line(format, &v, &all, &out) && sr_buffer_len(&out) == 150001, "50000 items");
    sr_buffer_free(&out);
    free(format);
}

/* Pieces of another program, or of none, give a wrong line, but reads no byte beside it */
static void bad_pieces(void)
{
    sr_logformat *f = compiled("a %s b %s c", 11);
    unsigned seed = 1;
    bool done = f != NULL;
    for (int round = 0; round < 5000 && done; round++) {
        char bytes[40];
        size_t len = (size_t)rand_r(&seed) % sizeof bytes;
        for (size_t i = 0; i < len; i++)
            bytes[i] = (char)(rand_r(&seed) % (i % 4 ? 1 : 20));
        sr_buffer out = {0};
        done = sr_logformat_late(f, sr_bytes_of(guarded(bytes, len), len), &all, &out);
        sr_buffer_free(&out);
    }
    ok(done, "pieces that are none");
    sr_logformat_free(f);
}

static void embedding(void)
{
    size_t count;
    int mine;
    sr_logformat *f = compiled("%{A}i%% %s%z", 12);
    sr_logitem *items = sr_logformat_items(f, &count);
    is_int((long long)count, 4, "items");
    ok(items[0].kind == SR_LOG_IN && items[1].kind == SR_LOG_TEXT && items[2].kind == SR_LOG_STATUS &&
           items[3].kind == SR_LOG_CUSTOM && items[3].letter == 'z' && !items[3].name.at,
       "what they are");
    ok(!items[0].aux, "an aux that is not set");
    items[0].aux = &mine;
    ok(sr_logformat_items(f, &count)[0].aux == &mine, "and one that is");
    ok(sr_logformat_has(f, SR_LOG_STATUS) && sr_logformat_has(f, SR_LOG_IN) &&
           !sr_logformat_has(f, SR_LOG_OUT) && !sr_logformat_has(f, SR_LOG_TIME),
       "what a program asks for");
    sr_logformat_free(f);

    static const sr_logletters own = {.chars = "Xk", .blocks = "De"};
    sr_logformat_error err;
    f = sr_logformat_new("%X%k%{queue}D%{any}D%{e}e%D", 27, &own, &err);
    items = sr_logformat_items(f, &count);
    ok(count == 6 && items[0].kind == SR_LOG_CUSTOM && items[4].kind == SR_LOG_CUSTOM &&
           items[5].kind == SR_LOG_DURATION,
       "what only this language has, an embedder may have otherwise");
    sr_logformat_free(f);
    sr_logformat_free(NULL);
}

static void is_field(const char *head, const char *name, const char *want)
{
    size_t len = strlen(head);
    sr_bytes got = sr_response_value(sr_bytes_of(guarded(head, len), len), sr_bytes_of(name, strlen(name)));
    if (want)
        is_bytes(got.at, got.len, want, name);
    else
        ok(!got.at, "no %s", name);
}

static void fields(void)
{
    static const char head[] =
        "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nX-Empty:\r\nset-cookie: b\r\nX: \t y \r\n\r\n";
    is_field(head, "Set-Cookie", "a");
    is_field(head, "X-EMPTY", "");
    is_field(head, "x", "y ");
    is_field(head, "Set", NULL);
    is_field(head, "Nothing", NULL);
    is_field("", "X", NULL);
    is_field("X", "X", NULL);
    is_field("X:", "X", "");
    is_field("X: 1", "X", "1");
    is_field("X: 1\r", "X", "1");
}

int main(void)
{
    setenv("TZ", "UTC0", 1);
    errors();
    items();
    presets();
    random_lines();
    long_values();
    bad_pieces();
    embedding();
    fields();
    return done_testing();
}
