/* wsframe: frames of a client, whole and byte by byte, by a table; heads of the server. */
#include "../../src/websocket/wsframe.h"
#include "guard.h"
#include "tap.h"

enum { MAX = 70000 };

static char in[200000], out[200000];
static size_t n_in;

static const unsigned char mask[4] = {0x37, 0xfa, 0x21, 0x3d};

/* Appends a masked frame; `wide`: bytes of its length, 0: as few as possible. */
static void frame(unsigned first, const char *at, size_t len, unsigned wide)
{
    unsigned bytes = wide ? wide : len < 126 ? 1 : len < 65536 ? 2 : 8;
    in[n_in++] = (char)first;
    in[n_in++] = (char)(0x80 | (bytes == 1 ? len : bytes == 2 ? 126u : 127u));
    for (unsigned i = bytes == 1 ? 0 : bytes; i > 0; i--)
        in[n_in++] = (char)((uint64_t)len >> (8 * (i - 1)));
    memcpy(in + n_in, mask, 4);
    n_in += 4;
    for (size_t i = 0; i < len; i++)
        in[n_in++] = (char)((unsigned char)at[i] ^ mask[i % 4]);
}

/* What comes out, as text: T(..) B(..) <ping> [pong] C1000(..) and !code at the end */
static size_t read_all(size_t step, size_t max)
{
    static char copy[sizeof in];
    sr_wsframe f;
    size_t n = 0, used;
    memcpy(copy, in, n_in);
    sr_wsframe_init(&f);
    for (size_t from = 0; from < n_in;) {
        size_t some = n_in - from < step ? n_in - from : step;
        sr_wsframe_result r = sr_wsframe_feed(&f, copy + from, some, max, &used);
        from += used;
        if (r == SR_WSFRAME_BAD) {
            n += (size_t)sprintf(out + n, "!%d", f.code);
            break;
        }
        if (r == SR_WSFRAME_WAIT)
            continue;
        static const char kinds[] = "?TB.....C<[";
        out[n++] = kinds[f.kind];
        if (f.kind == SR_WSFRAME_CLOSE)
            n += (size_t)sprintf(out + n, "%d", f.code);
        out[n++] = '(';
        if (f.bytes.len)
            memcpy(out + n, f.bytes.at, f.bytes.len);
        n += f.bytes.len;
        out[n++] = ')';
        if (f.kind == SR_WSFRAME_CLOSE)
            break;
    }
    sr_wsframe_free(&f);
    return n;
}

static void is(const char *want, const char *name)
{
    static const size_t steps[] = {sizeof in, 1, 2, 3, 7, 1000};
    bool same = true;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t n = read_all(steps[i], MAX);
        if (n != strlen(want) || memcmp(out, want, n) != 0) {
            tap_bytes("got", out, n);
            same = false;
        }
    }
    ok(same, "%s", name);
    n_in = 0;
}

#define TEXT(s) (s), sizeof(s) - 1, 0

static void messages(void)
{
    frame(0x81, TEXT("Hello"));
    is("T(Hello)", "RFC 6455 5.7: a masked text");
    frame(0x82, TEXT(""));
    frame(0x81, TEXT("x"));
    is("B()T(x)", "an empty one, then another");
    frame(0x01, TEXT("Hel"));
    frame(0x80, TEXT("lo"));
    is("T(Hello)", "in two fragments");
    frame(0x01, TEXT("a"));
    frame(0x89, TEXT("ping"));
    frame(0x00, TEXT("b"));
    frame(0x8a, TEXT(""));
    frame(0x80, TEXT("c"));
    frame(0x82, TEXT("d"));
    is("<(ping)[()T(abc)B(d)", "control frames between fragments");
    frame(0x01, TEXT(""));
    frame(0x00, TEXT(""));
    frame(0x80, TEXT(""));
    is("T()", "empty fragments");
    frame(0x01, TEXT("\xce\xba\xe1\xbd"));
    frame(0x80, TEXT("\xb9"));
    is("T(\xce\xba\xe1\xbd\xb9)", "a character in two fragments");
}

static void closes(void)
{
    frame(0x88, TEXT(""));
    frame(0x81, TEXT("later"));
    is("C1005()", "CLOSE without a code");
    frame(0x88, TEXT("\x03\xe8"));
    is("C1000()", "with one");
    frame(0x88, TEXT("\x03\xf1gone"));
    is("C1009(gone)", "and a reason");
    frame(0x88, TEXT("\x03"));
    is("!1002", "half a code");
    frame(0x88, TEXT("\x03\xe8\xff"));
    is("!1007", "a reason that is not UTF-8");
    static const unsigned good[] = {1000, 1001, 1002, 1003, 1007, 1008, 1009,
                                    1010, 1011, 1012, 1013, 1014, 3000, 4999};
    static const unsigned bad[] = {0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ok(sr_wsframe_code(good[i]), "code %u", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char code[2] = {(char)(bad[i] >> 8), (char)bad[i]};
        frame(0x88, code, 2, 0);
        is("!1002", "a code that must not be sent");
    }
}

static void broken(void)
{
    static const struct row {
        const char *bytes;
        size_t len;
        const char *name;
    } rows[] = {
#define ROW(bytes, name) {bytes, sizeof(bytes) - 1, name}
        ROW("\x81\x01x", "not masked"),
        ROW("\xc1\x80", "RSV1"),
        ROW("\xa1\x80", "RSV2"),
        ROW("\x91\x80", "RSV3"),
        ROW("\x83\x80", "opcode 3"),
        ROW("\x87\x80", "opcode 7"),
        ROW("\x8b\x80", "opcode 11"),
        ROW("\x8f\x80", "opcode 15"),
        ROW("\x09\x80", "a ping in fragments"),
        ROW("\x89\xfe", "a ping of 126 bytes"),
        ROW("\x88\xff", "a close of many bytes"),
        ROW("\x80\x80", "nothing to continue"),
        ROW("\x00\x80", "likewise, without FIN"),
        ROW("\x81\xfe\x00\x7d....", "125 bytes in two"),
        ROW("\x81\xff\0\0\0\0\0\0\xff\xff....", "65535 bytes in eight"),
        ROW("\x81\xff\x80\0\0\0\0\0\0\0....", "2^63 bytes"),
        ROW("\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff....", "2^64 - 1 bytes"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memcpy(in, rows[i].bytes, n_in = rows[i].len);
        is("!1002", rows[i].name);
    }
    frame(0x01, TEXT("a"));
    frame(0x81, TEXT("b"));
    is("!1002", "a message within a message");
    frame(0x81, TEXT("ok"));
    frame(0x81, TEXT("\xff"));
    is("T(ok)!1007", "text that is not UTF-8");
    frame(0x81, TEXT("\xce"));
    is("!1007", "a character that is cut off");
    frame(0x82, TEXT("\xff\xfe"));
    is("B(\xff\xfe)", "bytes may be anything");
    frame(0x01, TEXT("\xf4\x90"));
    is("!1007", "fails before the message is complete");
}

static void sizes(void)
{
    static char big[MAX + 1], want[MAX + 4];
    static const size_t lens[] = {125, 126, 127, 65535, 65536, MAX};
    memset(big, '*', sizeof big);
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        size_t len = lens[i];
        frame(0x81, big, len, 0);
        snprintf(want, sizeof want, "T(%.*s)", (int)len, big);
        is(want, "a text of that many bytes");
    }
    frame(0x82, big, MAX + 1, 0);
    n_in = 14;
    is("!1009", "one byte above the limit, as soon as the head is here");
    frame(0x02, big, MAX, 0);
    frame(0x80, big, 1, 0);
    is("!1009", "the limit is for all fragments together");
    memcpy(in, "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff....", n_in = 14);
    is("!1009", "2^63 - 1 bytes are announced");

    sr_wsframe f;
    size_t used;
    sr_wsframe_init(&f);
    frame(0x82, big, 1000, 0);
    ok(sr_wsframe_idle(&f), "nothing has come");
    sr_wsframe_feed(&f, in, 9, MAX, &used);
    ok(used == 9 && sr_wsframe_memory(&f) < 300 && !sr_wsframe_idle(&f),
       "memory for what has come, not for what is announced");
    ok(sr_wsframe_feed(&f, in + 9, n_in - 9, MAX, &used) == SR_WSFRAME_MESSAGE && f.bytes.len == 1000,
       "the rest");
    ok(sr_wsframe_feed(&f, in, 0, MAX, &used) == SR_WSFRAME_WAIT && !sr_wsframe_memory(&f) &&
           sr_wsframe_idle(&f),
       "and none between two messages");
    n_in = 0;
}

static void heads(void)
{
    char to[2 + SR_WSFRAME_CONTROL_MAX], reason[300];
    ok(sr_wsframe_head(to, SR_WSFRAME_TEXT, 5) == 2 && memcmp(to, "\x81\x05", 2) == 0, "the head of 5 bytes");
    ok(sr_wsframe_head(to, SR_WSFRAME_BINARY, 125) == 2 && memcmp(to, "\x82\x7d", 2) == 0,
       "the head of 125 bytes");
    ok(sr_wsframe_head(to, SR_WSFRAME_BINARY, 126) == 4 && memcmp(to, "\x82\x7e\x00\x7e", 4) == 0,
       "the head of 126 bytes");
    ok(sr_wsframe_head(to, SR_WSFRAME_BINARY, 65535) == 4 && memcmp(to, "\x82\x7e\xff\xff", 4) == 0,
       "the head of 65535 bytes");
    ok(sr_wsframe_head(to, SR_WSFRAME_BINARY, 65536) == 10 &&
           memcmp(to, "\x82\x7f\0\0\0\0\0\x01\0\0", 10) == 0,
       "the head of 65536 bytes");
    sr_buffer all = {0};
    ok(sr_wsframe_add(&all, SR_WSFRAME_PONG, SR_BYTES("")) &&
           sr_wsframe_add(&all, SR_WSFRAME_TEXT, SR_BYTES("hello")) &&
           sr_bytes_equal(sr_buffer_bytes(&all), SR_BYTES("\x8a\0\x81\x05hello")),
       "whole messages");
    sr_buffer_free(&all);
    is_int((long long)sr_wsframe_close(to, SR_CLOSE_NONE, SR_BYTES("no")), 2, "CLOSE without a code");
    ok(sr_wsframe_close(to, SR_CLOSE_AWAY, SR_BYTES("bye")) == 7 && memcmp(to,
                                                                           "\x88\x05\x03\xe9"
                                                                           "bye",
                                                                           7) == 0,
       "with one");
    for (size_t i = 0; i < sizeof reason; i += 2)
        memcpy(reason + i, "\xc3\xa9", 2);
    ok(sr_wsframe_close(to, SR_CLOSE_AWAY, sr_bytes_of(reason, sizeof reason)) == 2 + 2 + 122,
       "a long reason is cut between characters");
}

static void unmask(void)
{
    bool same = true;
    for (size_t at = 0; at < 8; at++)
        for (size_t len = 0; len < 40; len++) {
            char got[48], want[48];
            uint32_t m, turned;
            for (size_t i = 0; i < sizeof got; i++)
                got[i] = want[i] = (char)(i * 37);
            memcpy(&m, mask, 4);
            for (size_t i = 0; i < len; i++)
                want[at + i] = (char)((unsigned char)want[at + i] ^ mask[i % 4]);
            turned = sr_wsframe_unmask(got + at, len, m);
            unsigned char next[4];
            memcpy(next, &turned, 4);
            same = same && memcmp(got, want, sizeof got) == 0 && next[0] == mask[len % 4] &&
                   next[3] == mask[(len + 3) % 4];
        }
    ok(same, "unmasked, whatever the address and the length are");
}

int main(void)
{
    messages();
    closes();
    broken();
    sizes();
    heads();
    unmask();
    return done_testing();
}
