/* logtext: no byte of a value can be mistaken for one of the line. */
#include "../../src/log/text.h"

#include "guard.h"
#include "tap.h"

static void is_escaped(const char *in, size_t len, const char *text, const char *json)
{
    sr_buffer out = {0};
    sr_logtext_add(&out, sr_bytes_of(guarded(in, len), len));
    is_bytes(out.data ? sr_buffer_at(&out) : "", sr_buffer_len(&out), text, text);
    sr_buffer_reset(&out);
    sr_logtext_json(&out, sr_bytes_of(guarded(in, len), len));
    is_bytes(sr_buffer_at(&out), sr_buffer_len(&out), json, json);
    sr_buffer_free(&out);
}
#define IS_ESCAPED(in, text, json) is_escaped(in, sizeof(in) - 1, text, json)

static void escapes(void)
{
    IS_ESCAPED("", "", "\"\"");
    IS_ESCAPED(" ~", " ~", "\" ~\"");
    IS_ESCAPED("\"\\/", "\"\\/", "\"\\\"\\\\/\"");
    IS_ESCAPED("\0\x1f\x7f\x80\xff", "\\x00\\x1f\\x7f\\x80\\xff", "\"\\u0000\\u001f\\u007f\\\\x80\\\\xff\"");
    IS_ESCAPED("a\nb\r\tc", "a\\x0ab\\x0d\\x09c", "\"a\\u000ab\\u000d\\u0009c\"");
    IS_ESCAPED("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\\xc3\\xa9\\xe2\\x82\\xac\\xf0\\x9f\\x98\\x80",
               "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    IS_ESCAPED("\xc0\x80", "\\xc0\\x80", "\"\\\\xc0\\\\x80\"");                 /* overlong */
    IS_ESCAPED("\xe0\x9f\xbf", "\\xe0\\x9f\\xbf", "\"\\\\xe0\\\\x9f\\\\xbf\""); /* overlong */
    IS_ESCAPED("\xed\xa0\x80", "\\xed\\xa0\\x80", "\"\\\\xed\\\\xa0\\\\x80\""); /* a surrogate */
    IS_ESCAPED("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80",
               "\"\\\\xf4\\\\x90\\\\x80\\\\x80\"");             /* too large */
    IS_ESCAPED("\xe2\x82", "\\xe2\\x82", "\"\\\\xe2\\\\x82\""); /* ends too early */
    IS_ESCAPED("\xe2\x82x\xc3", "\\xe2\\x82x\\xc3", "\"\\\\xe2\\\\x82x\\\\xc3\"");

    bool same = true; /* every byte at every place of the eight that are looked at together */
    for (int c = 0; c < 256 && same; c++)
        for (size_t len = 1; len < 20 && same; len++)
            for (size_t at = 0; at < len && same; at++) {
                char in[20], want[24];
                memset(in, 'x', sizeof in);
                memset(want, 'x', sizeof want);
                in[at] = (char)c;
                bool plain = c >= 0x20 && c < 0x7f;
                if (plain)
                    want[at] = (char)c;
                else
                    snprintf(want + at, 5, "\\x%02x", c), want[at + 4] = 'x';
                sr_buffer out = {0};
                sr_logtext_add(&out, sr_bytes_of(guarded(in, len), len));
                same = sr_buffer_len(&out) == len + (plain ? 0 : 3) &&
                       !memcmp(sr_buffer_at(&out), want, sr_buffer_len(&out));
                sr_buffer_free(&out);
            }
    ok(same, "every byte at every place");
}

static void numbers(void)
{
    static const uint64_t some[] = {0, 1, 9, 10, 99, 100, 4294967296, UINT64_MAX};
    sr_buffer out = {0};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
        char want[24];
        snprintf(want, sizeof want, "%llu", (unsigned long long)some[i]);
        sr_buffer_reset(&out);
        sr_logtext_number(&out, some[i]);
        char name[40];
        snprintf(name, sizeof name, "the number %s", want);
        is_bytes(sr_buffer_at(&out), sr_buffer_len(&out), want, name);
    }
    sr_buffer_free(&out);
}

int main(void)
{
    escapes();
    numbers();
    return done_testing();
}
