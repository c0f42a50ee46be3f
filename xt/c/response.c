/* response: heads as they go on the wire. */
#include "../../src/http/page.h"
#include "../../src/http1/write.h"

#include "tap.h"

#include <stdlib.h>

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"
#define DATE_LINE "Date: " DATE "\r\n"
#define UNKNOWN SR_LENGTH_UNKNOWN

static sr_buffer out;
static sr_response r;
static sr_version version;

static void is_out(const char *want, const char *name)
{
    is_bytes(sr_buffer_at(&out), sr_buffer_len(&out), want, name);
    sr_buffer_reset(&out);
}

static void begin(int status, uint8_t minor, bool is_head, bool keep_alive)
{
    sr_buffer_reset(&out);
    version = minor ? SR_HTTP_1_1 : SR_HTTP_1_0;
    if (!sr_response_begin(&r, status, is_head, keep_alive))
        sr_write_status(&out, status);
}

static sr_response_error add(const char *name, const char *value)
{
    return sr_response_field(&r, &out, sr_bytes_of(name, strlen(name)), sr_bytes_of(value, strlen(value)));
}

static void end(uint64_t known)
{
    if (sr_write_end(&r, version, &out, known, DATE, sr_bytes_of(NULL, 0)) != SR_RESPONSE_OK)
        ok(false, "finish");
}

static bool decided(sr_response_framing framing, uint64_t length, bool keep_alive)
{
    bool right = r.framing == framing && r.body_length == length && r.keep_alive == keep_alive;
    if (!right)
        printf("# framing %d, body_length %llu, keep_alive %d\n", (int)r.framing,
               (unsigned long long)r.body_length, r.keep_alive);
    return right;
}

/* Who makes no head of it comes to the same decisions. */
static void decisions(void)
{
    static const int status[] = {200, 204, 205, 304, 404};
    static const char *const fields[][2] = {{"X-A", "b"},
                                            {"Content-Length", "11"},
                                            {"Content-Length", "5"},
                                            {"Connection", "close"},
                                            {"Transfer-Encoding", "chunked"}};
    static const uint64_t known[] = {0, 11, UNKNOWN};
    bool same = true;
    for (int i = 0; i < 5 * 5 * 3 * 8; i++) {
        const char *const *field = fields[i % 5];
        int code = status[i / 5 % 5];
        uint64_t length = known[i / 25 % 3];
        bool minor = i / 75 & 1, is_head = i / 75 & 2, keeps = i / 75 & 4;
        begin(code, minor, is_head, keeps);
        add(field[0], field[1]);
        end(length);
        sr_response made = r;
        bool told = false;
        sr_buffer_add(&out, "", 1);
        const char *line = strstr(sr_buffer_at(&out), "Content-Length: ");
        uint64_t tells = line ? strtoull(line + 16, NULL, 10) : UNKNOWN;
        sr_buffer_reset(&out);
        same &= sr_response_begin(&r, code, is_head, keeps) == SR_RESPONSE_OK;
        add(field[0], field[1]);
        told = sr_response_decide(&r, length) == tells;
        same &= told && r.framing == made.framing && r.body_length == made.body_length &&
                (r.keep_alive && !(minor == 0 && r.framing == SR_FRAMING_OPEN)) == made.keep_alive &&
                r.app_length == made.app_length && r.app_chunked == made.app_chunked;
    }
    ok(same, "who makes no head comes to the same decisions");
    ok(sr_response_begin(&r, 199, false, true) == SR_RESPONSE_BAD_STATUS &&
           sr_response_begin(&r, 1000, false, true) == SR_RESPONSE_BAD_STATUS,
       "and refuse the same statuses");
}

static void heads(void)
{
    begin(200, 1, false, true);
    add("Content-Type", "text/plain");
    add("X-Empty", "");
    sr_write_end(&r, version, &out, 11, DATE, SR_BYTES("Sirius"));
    is_out("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Empty: \r\nContent-Length: 11\r\n" DATE_LINE
           "Server: Sirius\r\n\r\n",
           "a plain head");
    ok(decided(SR_FRAMING_LENGTH, 11, true), "its framing");

    begin(599, 1, false, true);
    add("date", "x");
    add("SERVER", "y");
    end(0);
    is_out("HTTP/1.1 599 Unknown\r\ndate: x\r\nSERVER: y\r\nContent-Length: 0\r\n\r\n",
           "the application's Date and Server");
    begin(200, 1, false, true);
    add("Strict-Transport-Securitz", "max-age=1");
    ok(!r.has_hsts, "a field of the same length");
    add("STRICT-transport-Security", "max-age=1");
    ok(r.has_hsts, "the application's Strict-Transport-Security");
    begin(999, 1, false, true);
    end(18446744073709551614u);
    is_out("HTTP/1.1 999 Unknown\r\nContent-Length: 18446744073709551614\r\n" DATE_LINE "\r\n",
           "the longest length");
    begin(200, 1, false, true);
    add("Set-Cookie", "a=b");
    add("Set-Cookie", "c=d\t\xc3\xa9");
    end(0);
    is_out(
        "HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\t\xc3\xa9\r\nContent-Length: 0\r\n" DATE_LINE
        "\r\n",
        "fields in their order");
}

static void unknown_length(void)
{
    begin(200, 1, false, true);
    end(UNKNOWN);
    is_out("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" DATE_LINE "\r\n", "chunked");
    ok(decided(SR_FRAMING_OPEN, 0, true) && sr_write_chunked(&r, version), "its framing");
    begin(200, 1, false, false);
    end(UNKNOWN);
    is_out("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" DATE_LINE "Connection: close\r\n\r\n",
           "chunked and close");
    begin(200, 0, false, true);
    end(UNKNOWN);
    is_out("HTTP/1.1 200 OK\r\n" DATE_LINE "Connection: close\r\n\r\n", "1.0: the close ends it");
    ok(decided(SR_FRAMING_OPEN, 0, false) && !sr_write_chunked(&r, version), "its framing");
    begin(200, 0, false, true);
    end(3);
    is_out("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n" DATE_LINE "Connection: keep-alive\r\n\r\n",
           "1.0 that is kept");
}

static void application_length(void)
{
    begin(200, 1, false, true);
    ok(add("content-length", "5") == SR_RESPONSE_OK, "a length");
    end(UNKNOWN);
    is_out("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" DATE_LINE "\r\n", "is announced");
    ok(decided(SR_FRAMING_LENGTH, 5, true), "its framing");
    begin(200, 1, false, true);
    ok(add("Content-Length", "9223372036854775807") == SR_RESPONSE_OK, "the most 63 bits hold");
    begin(200, 1, false, true);
    add("Content-Length", "10");
    end(5);
    is_out("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n" DATE_LINE "Connection: close\r\n\r\n",
           "R04 a body too short: close");
    begin(200, 1, false, true);
    add("Content-Length", "10");
    end(15);
    ok(decided(SR_FRAMING_LENGTH, 10, true), "R04 a body too long: cut");
    begin(200, 1, false, true);
    ok(add("Content-Length", " 5 ") == SR_RESPONSE_OK && add("Content-Length", "5") == SR_RESPONSE_OK,
       "R03 twice the same");
    ok(add("Content-Length", "6") == SR_RESPONSE_BAD_LENGTH, "R03 two that differ");
    static const char *const bad[] = {
        "", "a", "-1", "+1", "1.0", "5, 5", "1e3", "9223372036854775808", "10000000000000000000"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        begin(200, 1, false, true);
        ok(add("Content-Length", bad[i]) == SR_RESPONSE_BAD_LENGTH, "no length: '%s'", bad[i]);
    }
}

static void hop_fields(void)
{
    begin(200, 1, false, true);
    add("Transfer-Encoding", "chunked");
    add("connection", "keep-alive");
    add("Keep-Alive", "timeout=5");
    add("Proxy-Connection", "close");
    add("Content-Length", "3");
    end(3);
    is_out("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n" DATE_LINE "\r\n", "R03 hop-by-hop fields are ours");
    begin(200, 1, false, true);
    add("Connection", "x, Close");
    end(0);
    is_out("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" DATE_LINE "Connection: close\r\n\r\n",
           "but a close is honoured");
    static const struct {
        uint8_t minor;
        bool keep_alive;
        const char *want;
    } upgrades[] = {{1, true, "Connection: Upgrade\r\n\r\n"},
                    {1, false, "Connection: close, Upgrade\r\n\r\n"},
                    {0, true, "Connection: keep-alive, Upgrade\r\n\r\n"}};
    for (size_t i = 0; i < 3; i++) {
        begin(426, upgrades[i].minor, false, upgrades[i].keep_alive);
        add("Upgrade", "websocket");
        end(0);
        size_t len = strlen(upgrades[i].want);
        is_bytes(out.data + out.end - len, len, upgrades[i].want, upgrades[i].want);
    }
    begin(200, 1, false, true);
    add("Dat_", "a");
    add("Serves", "a");
    add("Upgradf", "a");
    add("Connection", "\"close\"");
    add("Content-Lengti", "a");
    add("Proxy-Connectioo", "a");
    add("Transfer-Encodinh", "a");
    add("Keep-Alivf", "a");
    end(0);
    is_out("HTTP/1.1 200 OK\r\nDat_: a\r\nServes: a\r\nUpgradf: a\r\nContent-Lengti: a\r\nProxy-Connectioo: "
           "a\r\nTransfer-Encodinh: a\r\nKeep-Alivf: a\r\nContent-Length: 0\r\n" DATE_LINE "\r\n",
           "others as long are left alone");
}

static void no_body(void)
{
    static const struct {
        int status;
        bool is_head;
        const char *app;
        uint64_t known;
        const char *want;
        sr_response_framing framing;
        const char *name;
    } cases[] = {
        {204, false, NULL, 0, "", SR_FRAMING_NONE, "status 204"},
        {204, false, "5", UNKNOWN, "", SR_FRAMING_NONE, "204 with a length"},
        {204, true, "5", 5, "", SR_FRAMING_NONE, "HEAD, 204"},
        {304, false, NULL, 0, "", SR_FRAMING_NONE, "status 304"},
        {304, false, "5", 0, "Content-Length: 5\r\n", SR_FRAMING_NONE, "304 with a length"},
        {304, true, NULL, 7, "", SR_FRAMING_NONE, "HEAD, 304"},
        {205, false, "5", 5, "Content-Length: 0\r\n", SR_FRAMING_LENGTH, "status 205"},
        {205, true, NULL, UNKNOWN, "Content-Length: 0\r\n", SR_FRAMING_NONE, "HEAD, 205"},
        {200, true, NULL, 0, "", SR_FRAMING_NONE, "HEAD without a body"},
        {200, true, NULL, UNKNOWN, "", SR_FRAMING_NONE, "HEAD, length unknown"},
        {200, true, NULL, 7, "Content-Length: 7\r\n", SR_FRAMING_NONE, "HEAD with a body"},
        {200, true, "5", 0, "Content-Length: 5\r\n", SR_FRAMING_NONE, "HEAD with a length"},
        {200, true, "0", 7, "Content-Length: 0\r\n", SR_FRAMING_NONE, "HEAD with a length of 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin(cases[i].status, 1, cases[i].is_head, true);
        sr_buffer_reset(&out); /* the status line is not what is asked here */
        if (cases[i].app)
            add("Content-Length", cases[i].app);
        end(cases[i].known);
        char want[128];
        snprintf(want, sizeof want, "%s%s\r\n", cases[i].want, DATE_LINE);
        is_out(want, cases[i].name);
        ok(decided(cases[i].framing, 0, true), "%s: no body, and kept", cases[i].name);
    }
}

static void refused(void)
{
    static const int bad_status[] = {-1, 0, 99, 100, 101, 199, 1000};
    for (size_t i = 0; i < sizeof bad_status / sizeof *bad_status; i++)
        ok(sr_response_begin(&r, bad_status[i], false, true) == SR_RESPONSE_BAD_STATUS, "status %d",
           bad_status[i]);
    begin(200, 1, false, true);
    static const char *const names[] = {"", "X y", "a:", "a\r\nb", "\xc3\xa9", "a\t"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ok(add(names[i], "a") == SR_RESPONSE_BAD_NAME, "R05 name %zu", i);
    static const char *const values[] = {"a\r\nSet-Cookie: b", "a\n", "\r", "\x01", "0123456789\x7f"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        ok(add("X", values[i]) == SR_RESPONSE_BAD_VALUE, "R05 value %zu", i);
    ok(sr_response_field(&r, &out, SR_BYTES("X"), SR_BYTES("a\0b")) == SR_RESPONSE_BAD_VALUE, "R05 NUL");
    ok(add("Connection", "a\r\nb") == SR_RESPONSE_BAD_VALUE, "R05 in a field that is not sent");
    for (int e = SR_RESPONSE_OK; e <= SR_RESPONSE_NO_MEMORY + 1; e++)
        ok(strlen(sr_response_error_text((sr_response_error)e)) > 0, "text of error %d", e);
}

static void informational(void)
{
    sr_buffer_reset(&out);
    ok(sr_write_status(&out, 103), "informational");
    sr_informational_field(&out, SR_BYTES("Link"), SR_BYTES("</a.css>; rel=preload"));
    sr_informational_field(&out, SR_BYTES("Content-Length"), SR_BYTES("5"));
    sr_informational_field(&out, SR_BYTES("Transfer-Encoding"), SR_BYTES("chunked"));
    sr_informational_field(&out, SR_BYTES("Connection"), SR_BYTES("close"));
    sr_informational_field(&out, SR_BYTES("Upgrade"), SR_BYTES("h2c"));
    sr_buffer_add(&out, "\r\n", 2);
    ok(sr_informational_status(103), "status 103");
    is_out("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n", "early hints, no framing");
    ok(sr_informational_field(&out, SR_BYTES("a b"), SR_BYTES("")) == SR_RESPONSE_BAD_NAME, "bad name");
    ok(sr_informational_field(&out, SR_BYTES("a"), SR_BYTES("\n")) == SR_RESPONSE_BAD_VALUE, "bad value");
    ok(sr_informational_status(102), "status 102");
    ok(sr_informational_status(199), "status 199");
    static const int bad[] = {100, 101, 200, 0};
    for (size_t i = 0; i < 4; i++)
        ok(!sr_informational_status(bad[i]), "not with %d", bad[i]);
}

static void chunk_heads(void)
{
    static const struct {
        uint64_t length;
        const char *want;
    } cases[] = {{1, "1\r\n"},
                 {15, "f\r\n"},
                 {16, "10\r\n"},
                 {0x1a2b, "1a2b\r\n"},
                 {1 << 30, "40000000\r\n"},
                 {UINT64_MAX, "ffffffffffffffff\r\n"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char head[18];
        size_t len = sr_write_chunk_head(head, cases[i].length);
        is_bytes(head, len, cases[i].want, "chunk head");
    }
}

/* A response of the server's own, which ends the connection. */
static void own(int status, bool is_head, sr_bytes server, sr_bytes extra)
{
    sr_page page;
    sr_page_make(&page, status);
    begin(status, 1, is_head, false);
    sr_response_fields(&r, &out, page.head.fields);
    sr_response_fields(&r, &out, extra);
    r.app_length = page.head.app_length;
    sr_write_end(&r, version, &out, page.head.length, DATE, server);
    if (!is_head)
        sr_buffer_add_bytes(&out, sr_page_text(&page));
}

static void refusals(void)
{
    own(400, false, SR_BYTES("Sirius"), SR_BYTES(""));
    is_out("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 16\r\n" DATE_LINE
           "Server: Sirius\r\nConnection: close\r\n\r\n400 Bad Request\n",
           "status 400");
    own(426, true, SR_BYTES(""), SR_BYTES(""));
    is_out("HTTP/1.1 426 Upgrade Required\r\nContent-Type: text/plain\r\nUpgrade: "
           "websocket\r\nSec-WebSocket-Version: 13\r\nContent-Length: 21\r\n" DATE_LINE
           "Connection: close, Upgrade\r\n\r\n",
           "426 to HEAD");
    own(503, true, SR_BYTES(""), SR_BYTES("Strict-Transport-Security: max-age=1; preload\r\n"));
    is_out("HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: "
           "1\r\nStrict-Transport-Security: max-age=1; preload\r\nContent-Length: 24\r\n" DATE_LINE
           "Connection: close\r\n\r\n",
           "status 503, with Strict-Transport-Security");
    size_t longest = 0;
    for (int status = 400; status <= 999; status++) {
        sr_page page;
        sr_page_make(&page, status);
        longest = page.text_len > longest ? page.text_len : longest;
    }
    ok(longest > 0 && longest <= SR_PAGE_TEXT_MAX, "the longest text has %zu bytes", longest);
}

static void lines(void)
{
    begin(200, 1, false, true);
    sr_buffer_reset(&out);
    ok(!sr_response_fields(&r, &out, SR_BYTES("A: b\r\nConnection: close\r\nC: \r\n")), "lines of fields");
    is_out("A: b\r\nC: \r\n", "are filtered as fields are");
    ok(!r.keep_alive, "and noted");
    ok(!sr_response_fields(&r, &out, SR_BYTES("")), "there may be none");
    static const char *const bad[] = {"A: b",    "A: b\r", "A: b\n",  "A:b\r\n",      "A\r\n",
                                      "A b\r\n", "\r\n",   ": a\r\n", "A: b\r\n\r\n", "A: b\r\nC"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sr_bytes text = sr_bytes_of(bad[i], strlen(bad[i]));
        ok(sr_response_fields(&r, &out, text) == SR_RESPONSE_BAD_NAME &&
               sr_informational_fields(&out, text) == SR_RESPONSE_BAD_NAME,
           "no line %zu", i);
    }
    sr_buffer_reset(&out);
    ok(!sr_informational_fields(&out, SR_BYTES("Link: </a>\r\nContent-Length: 1\r\n")),
       "of an interim response");
    is_out("Link: </a>\r\n", "are filtered as well");
    ok(sr_informational_fields(&out, SR_BYTES("A: \x01\r\n")) == SR_RESPONSE_BAD_VALUE, "and checked");
    sr_bytes left = SR_BYTES("A: b \r\nC: \r\nD:e\r\n"), name, value;
    bool first = sr_response_next(&left, &name, &value) && sr_bytes_equal(name, SR_BYTES("A")) &&
                 sr_bytes_equal(value, SR_BYTES("b "));
    ok(first && sr_response_next(&left, &name, &value) && sr_bytes_equal(name, SR_BYTES("C")) && !value.len,
       "one line after another");
    ok(!sr_response_next(&left, &name, &value) && sr_bytes_equal(left, SR_BYTES("D:e\r\n")),
       "up to what is none");
}

/* A buffer at the end of what can be counted stands in for memory that is not there. */
static void no_memory(void)
{
    sr_buffer full = {.from = 0, .end = SIZE_MAX / 4, .cap = SIZE_MAX / 4};
    ok(!sr_write_status(&full, 200), "status line");
    ok(sr_response_field(&r, &full, SR_BYTES("A"), SR_BYTES("b")) == SR_RESPONSE_NO_MEMORY, "field");
    ok(sr_write_end(&r, SR_HTTP_1_1, &full, 0, DATE, SR_BYTES("S")) == SR_RESPONSE_NO_MEMORY, "finish");
    ok(!sr_write_status(&full, 103), "informational");
    ok(sr_informational_field(&full, SR_BYTES("a"), SR_BYTES("b")) == SR_RESPONSE_NO_MEMORY, "its field");
    ok(sr_response_fields(&r, &full, SR_BYTES("A: b\r\n")) == SR_RESPONSE_NO_MEMORY, "lines");
}

int main(void)
{
    heads();
    decisions();
    unknown_length();
    application_length();
    hop_fields();
    no_body();
    refused();
    informational();
    chunk_heads();
    refusals();
    lines();
    no_memory();
    sr_buffer_free(&out);
    return done_testing();
}
