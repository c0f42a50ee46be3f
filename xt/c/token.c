/* token: classes and lists. The classes are compared with sets written out as the RFCs have them. */
#include "../../src/http/token.h"

#include "guard.h"
#include "tap.h"

#define ALPHA "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

static void is_class(unsigned class, const char *set, const char *name)
{
    bool same = true;
    for (int c = 1; c < 256; c++)
        if (sr_char_is((unsigned char)c, class) != (strchr(set, c) != NULL)) {
            printf("# 0x%02x\n", (unsigned)c);
            same = false;
        }
    ok(same && !sr_char_is(0, class), "%s", name);
}

static sr_bytes text(const char *s)
{
    return sr_bytes_of(guarded(s, strlen(s)), strlen(s));
}

static void classes(void)
{
    static const char visible[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~" ALPHA DIGIT;
    char set[256];
    is_class(SR_CHAR_TOKEN, "!#$%&'*+-.^_`|~" ALPHA DIGIT, "tchar");
    snprintf(set, sizeof set, "%s \t", visible);
    for (int c = 0x80, n = (int)strlen(set); c < 256; c++) {
        set[n++] = (char)c;
        set[n] = 0;
    }
    is_class(SR_CHAR_VALUE, set, "field value");
    char high[129];
    for (int c = 0; c < 128; c++)
        high[c] = (char)(c + 0x80);
    high[128] = 0;
    snprintf(set, sizeof set, "%s%s", "!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~" ALPHA DIGIT, high);
    is_class(SR_CHAR_TARGET, set, "target");
    snprintf(set, sizeof set, "%s%s", "!\"$&'()*+,-./:;<=>@[]^_`{|}~" ALPHA DIGIT, high);
    is_class(SR_CHAR_PATH, set, "path");
    is_class(SR_CHAR_HOST, "-._~!$&'()*+;=%" ALPHA DIGIT, "host");
    is_class(SR_CHAR_DIGIT, DIGIT, "digit");
    is_class(SR_CHAR_HEX, DIGIT "abcdefABCDEF", "hex");
    is_class(SR_CHAR_LOWER, "abcdefghijklmnopqrstuvwxyz", "lower");
    is_class(SR_CHAR_DIGIT | SR_CHAR_LOWER, "abcdefghijklmnopqrstuvwxyz" DIGIT, "two classes");
}

static void values(void)
{
    is_int(sr_hex_value('0'), 0, "hex 0");
    is_int(sr_hex_value('9'), 9, "hex 9");
    is_int(sr_hex_value('a'), 10, "hex a");
    is_int(sr_hex_value('F'), 15, "hex F");
    is_int(sr_hex_value('g'), -1, "no hex: g");
    is_int(sr_hex_value('\0'), -1, "no hex: NUL");
    ok(sr_is_token(text("a-b")) && !sr_is_token(text("")) && !sr_is_token(text("a b")), "tokens");
    ok(sr_all_are(text(""), SR_CHAR_HEX) && !sr_all_are(text("0g"), SR_CHAR_HEX), "all are");

    bool same = true, tokens = true; /* each byte at each place of a value of 0 to 20 bytes */
    for (size_t len = 1; len <= 20; len++)
        for (size_t at = 0; at < len; at++)
            for (int c = 0; c < 256; c++) {
                char *s = guard_end() - len;
                memset(s, "x-Z"[at % 3], len);
                s[at] = (char)c;
                tokens &= sr_is_token(sr_bytes_of(s, len)) == sr_char_is((unsigned char)c, SR_CHAR_TOKEN);
                memset(s, at % 2 ? 'x' : '\xff', len);
                s[at] = (char)c;
                same &= sr_is_value(sr_bytes_of(s, len)) == sr_char_is((unsigned char)c, SR_CHAR_VALUE);
            }
    ok(tokens, "tokens, eight bytes at once and one by one");
    ok(same && sr_is_value(text("")), "values, eight bytes at once and one by one");
    ok(sr_is_value(text("\t\t\t\t\t\t\t\tabcdefgh\t")), "HTAB");
}

static void is_trimmed(const char *s, const char *want)
{
    sr_bytes got = sr_trim(text(s));
    is_bytes(got.at, got.len, want, "trim");
}

/* `want`: the elements with '|' behind each */
static void is_list(const char *s, const char *want)
{
    char joined[128] = "";
    sr_bytes list = text(s), element;
    while (sr_list_next(&list, &element)) {
        strncat(joined, element.at, element.len);
        strcat(joined, "|");
    }
    is_bytes(joined, strlen(joined), want, s);
}

static void lists(void)
{
    is_list("", "|");
    is_list("a", "a|");
    is_list(" a , b\t,\tc ", "a|b|c|");
    is_list("a,", "a||");
    is_list(",", "||");
    is_list(",,a", "||a|");
    is_list("a=\"b,c\", d", "a=\"b,c\"|d|");
    is_list("\"a\\\",b\",c", "\"a\\\",b\"|c|");
    is_list("\"a,b", "\"a,b|");
    is_list("\"a\\", "\"a\\|");
    is_list("\"a\"", "\"a\"|");
    sr_bytes none = {NULL, 0}, element;
    ok(!sr_list_next(&none, &element), "no list");
    ok(sr_list_has(text("a, CLOSE ,b"), SR_BYTES("close")), "has");
    ok(!sr_list_has(text("a, closed"), SR_BYTES("close")), "has not");
    ok(!sr_list_has(text("\"close\""), SR_BYTES("close")), "quoted is another");
}

static void bytes(void)
{
    ok(sr_bytes_equal(sr_bytes_of(NULL, 0), SR_BYTES("")), "nothing equals nothing");
    ok(!sr_bytes_equal(SR_BYTES("a"), SR_BYTES("A")), "case matters");
    ok(!sr_bytes_equal(SR_BYTES("a"), SR_BYTES("aa")), "length matters");
    ok(sr_bytes_equal_nocase(SR_BYTES("aZ-@["), SR_BYTES("Az-@[")), "or not");
    ok(!sr_bytes_equal_nocase(SR_BYTES("@["), SR_BYTES("`{")), "but only of letters");
    ok(!sr_bytes_equal_nocase(SR_BYTES("a"), SR_BYTES("")), "length matters always");
}

int main(void)
{
    classes();
    values();
    is_trimmed(" \t a b\t ", "a b");
    is_trimmed(" \t", "");
    is_trimmed("", "");
    lists();
    bytes();
    return done_testing();
}
