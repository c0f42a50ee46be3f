/* exceptions: kinds of exceptions, and how often each has occurred. */
#include "share/exceptions.h"

#include "tap.h"

#include <stdlib.h>

static const char *const cases[][2] = {
    {"boom at app.psgi line 7.\n", "boom at app.psgi line 7"},
    {"boom at app.psgi line 7, <STDIN> line 12.\n", "boom at app.psgi line 7"},
    {"boom\n", "boom"},
    {"\n\n  boom  \n\tmain::f() called at x line 3\n", "boom"},
    {"no user 4711 at /srv/lib/User.pm line 120.", "no user N at /srv/lib/User.pm line 120"},
    {"bad HASH(0x55d0c8a3e2f8) here", "bad HASH(0x...) here"},
    {"order 6f9619ff-8b86-d011-b42d-00cf4fc964ff is gone", "order N is gone"},
    {"commit da39a3ee5e6b4b0d3255bfef95601890afd80709", "commit N"},
    {"took 3.25 s of 10", "took N.N s of N"},
    {"utf8 in md5 of column2", "utf8 in md5 of column2"},
    {"boom at (eval 512) line 3.", "boom at (eval N) line 3"},
    {"Can't look at it at line 5 at lib/A.pm line 6.", "Can't look at it at line N at lib/A.pm line 6"},
    {"[2026-11-26 08:00:01.12345] [4711] [error] [XqGPLaSgjXC] boom at a.pl line 3.", "boom at a.pl line 3"},
    {"[error] Caught exception in App->x \"boom at a.pl line 3.\"",
     "Caught exception in App->x \"boom at a.pl line 3"},
    {"[only]", "[only]"},
    {"red \x1b[31m and \x7f \xc2\x9b end", "red  [31m and     end"},
    {"caf\xc3\xa9 at caf\xc3\xa9.pl line 2", "caf\xc3\xa9 at caf\xc3\xa9.pl line 2"},
    {"", ""},
    {" \n\t\n", ""},
};

static void texts(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i][0]);
        char out[SR_EXCEPTION_MAX], *at = malloc(len ? len : 1);
        memcpy(at, cases[i][0], len);
        is_bytes(out, sr_exception_text(sr_bytes_of(at, len), out), cases[i][1], cases[i][1]);
        free(at);
    }
}

/* Whether it is UTF-8 without control characters. */
static bool clean(const char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t more = c < 0x80 ? 0 : c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && c < 0xc2) || i + more >= len + (more == 0))
            return false;
        for (size_t j = 1; j <= more; j++)
            if (((unsigned char)text[i + j] & 0xc0) != 0x80)
                return false;
        i += more + 1;
    }
    return true;
}

static void lengths(void)
{
    static char raw[20000];
    char out[SR_EXCEPTION_MAX];
    bool all = true;
    for (size_t len = 1; len < 600; len++) {
        size_t n = 0;
        while (n < len)
            n += (size_t)sprintf(raw + n, "%s", n % 3 ? "\xe2\x82\xac" : "\xc3\xa9");
        n += (size_t)sprintf(raw + n, " at /a/long/name/");
        for (size_t i = 0; i < len / 8; i++)
            n += (size_t)sprintf(raw + n, "\xe2\x82\xac/");
        n += (size_t)sprintf(raw + n, "File.pm line 4711.\n");
        size_t got = sr_exception_text(sr_bytes_of(raw, n), out);
        bool good =
            got <= sizeof out && clean(out, got) && got > 9 && memcmp(out + got - 9, "line 4711", 9) == 0;
        if (!good)
            tap_bytes("got", out, got);
        all = all && good;
    }
    ok(all, "a long text is cut within its message and its file, between two characters");
    memset(raw, 'x', sizeof raw);
    ok(sr_exception_text(sr_bytes_of(raw, sizeof raw), out) <= sizeof out, "one without an end, too");
}

static sr_exceptions tables[2];
static sr_exception_sums sums;

static void fail(int table, const char *text, int64_t now)
{
    sr_exceptions_add(&tables[table], sr_bytes_of(text, strlen(text)), SR_BYTES("/order/42"), now);
}

static void sum(void)
{
    memset(&sums, 0, sizeof sums);
    sr_exceptions_sum(&sums, &tables[0]);
    sr_exceptions_sum(&sums, &tables[1]);
}

static void kinds(void)
{
    char text[64];
    memset(tables, 0, sizeof tables);
    for (int i = 0; i < 5; i++) {
        snprintf(text, sizeof text, "no row %d at a.pl line 3.", i);
        fail(0, text, 100 + i);
    }
    fail(1, "no row 9 at a.pl line 3.", 90);
    fail(1, "no row 9 at a.pl line 4.", 200);
    sr_exceptions_add(&tables[1], SR_BYTES(" \n"), SR_BYTES("/"), 300);
    sum();
    is_int((long long)sums.n, 2, "two kinds, by their lines");
    is_bytes(sums.at[0].text, sums.at[0].len, "no row N at a.pl line 4", "the last first");
    const sr_exception_sum *one = &sums.at[1];
    ok(one->count == 6 && one->first == 90 && one->last == 104, "workers add up");
    is_bytes(one->path, one->path_len, "/order/:id", "where it was last");
    is_int((long long)sums.count, 7, "all of them");

    for (int i = 0; i < 1000; i++) { /* whose texts are all different */
        snprintf(text, sizeof text, "odd %c%c at a.pl line %d.", 'a' + i % 26, 'a' + i / 26, i);
        fail(0, text, 1000 + i);
    }
    sum();
    is_int((long long)sums.n, SR_EXCEPTIONS_MAX + 2, "a table has so many kinds");
    is_int((long long)sums.count, 1007, "and counts what had to give way");
    snprintf(text, sizeof text, "odd %c%c at a.pl line 999", 'a' + 999 % 26, 'a' + 999 / 26);
    is_bytes(sums.at[0].text, sums.at[0].len, text, "the last is there");
}

static void scribbled(void)
{
    bool sound = true;
    srandom(5);
    for (int i = 0; i < 500; i++) {
        unsigned char *bytes = (unsigned char *)tables;
        for (int j = 0; j < 2000; j++)
            bytes[(size_t)random() % sizeof tables] = (unsigned char)random();
        fail(i % 2, "boom at a.pl line 3.", i);
        sum();
        sound = sound && sums.n <= SR_EXCEPTIONS_SUMMED;
        for (size_t e = 0; e < sums.n; e++) {
            sound = sound && sums.at[e].len <= SR_EXCEPTION_MAX && sums.at[e].path_len <= SR_FOLD_MAX;
            for (uint32_t c = 0; c < sums.at[e].len; c++)
                sound = sound && (unsigned char)sums.at[e].text[c] >= ' ' && sums.at[e].text[c] != 0x7f;
        }
    }
    ok(sound, "whatever is in the table, a reader gets lengths and characters that it can show");
}

int main(void)
{
    texts();
    lengths();
    kinds();
    scribbled();
    return done_testing();
}
