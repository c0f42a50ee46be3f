/* fold: paths without their ids. */
#include "http/fold.h"

#include "guard.h"
#include "tap.h"

#include <stdlib.h>

static const char *const cases[][2] = {
    {"/", "/"},
    {"", "/"},
    {"*", "*"},
    {"//", "//"},
    {"/about/", "/about/"},
    {"/user/42/edit", "/user/:id/edit"},
    {"/user/42", "/user/:id"},
    {"/42/43/44", "/:id/:id/:id"},
    {"/2026/11/26/title-of-the-day", "/:id/:id/:id/title-of-the-day"},
    {"/log/2026-11-26", "/log/:id"},
    {"/price/-1.50", "/price/:id"},
    {"/user/42.json", "/user/:id.json"},
    {"/user/42.", "/user/:id"},
    {"/u/6f9619ff-8b86-d011-b42d-00cf4fc964ff", "/u/:id"},
    {"/u/6F9619FF-8B86-D011-B42D-00CF4FC964FF.html", "/u/:id.html"},
    {"/commit/da39a3ee5e6b4b0d3255bfef95601890afd80709/diff", "/commit/:id/diff"},
    {"/o/507f1f77bcf86cd799439011", "/o/:id"},
    {"/h/deadbeef", "/h/deadbeef"}, /* a word */
    {"/h/deadbee1", "/h/:id"},
    {"/h/abcdefabcdefabcd", "/h/:id"},
    {"/t/dQw4w9WgXcQdQw4w9WgXcQ", "/t/:id"},
    {"/t/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N", "/t/:id"},
    {"/t/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/t/:id"},
    {"/t/v1stgxr8z5jdhi6bmyt2", "/t/:id"},
    /* what people have named */
    {"/api/v1/users", "/api/v1/users"},
    {"/v2", "/v2"},
    {"/report2026", "/report2026"},
    {"/md5/utf8/x86_64", "/md5/utf8/x86_64"},
    {"/10-ways-to-use-perl5-in-2026", "/10-ways-to-use-perl5-in-2026"},
    {"/wiki/List_of_people_2024_Summer", "/wiki/List_of_people_2024_Summer"},
    {"/MyLongClassName2024", "/MyLongClassName2024"},
    {"/product/iPhone15Pro", "/product/iPhone15Pro"},
    {"/feedface", "/feedface"},
    {"/md5-vs-sha256-vs-crc32-in-perl5", "/md5-vs-sha256-vs-crc32-in-perl5"},
    {"/mp3-to-mp4-to-h264-with-x265-and-av1", "/mp3-to-mp4-to-h264-with-x265-and-av1"},
    {"/decade", "/decade"},
    {"/a-very-long-title-with-many-words-and-no-number-at-all",
     "/a-very-long-title-with-many-words-and-no-number-at-all"},
    {"/style.css", "/style.css"},
    {"/jquery-3.7.1.min.js", "/jquery-3.7.1.min.js"},
    {"/caf%C3%A9", "/caf%C3%A9"},
    {"/@joe", "/@joe"},
    {"/a:b", "/a:b"},
    {"/user/:id", "/user/:id"},
    {"/a\x01\x1b[31m\x7f\xff b", "/a??[31m???b"},
};

static void words(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i][0]);
        char out[SR_FOLD_MAX], *at = malloc(len ? len : 1);
        memcpy(at, cases[i][0], len);
        size_t n = sr_fold(sr_bytes_of(at, len), out);
        is_bytes(out, n, cases[i][1], cases[i][1]);
        free(at);
    }
}

static void lengths(void)
{
    static char path[100000], out[SR_FOLD_MAX + 1];
    bool all = true;
    for (size_t len = 0; len < 400; len++) {
        memset(path, 'x', len);
        path[0] = '/';
        out[SR_FOLD_MAX] = 'z';
        size_t n = sr_fold(sr_bytes_of(path, len), out);
        bool good = len <= SR_FOLD_MAX ? n == (len ? len : 1)
                                       : n == SR_FOLD_MAX && memcmp(out + n - 3, "...", 3) == 0;
        all = all && good && out[SR_FOLD_MAX] == 'z';
    }
    ok(all, "a long path is cut, and ends in dots");
    for (size_t i = 0; i < sizeof path; i++)
        path[i] = i % 3 ? '7' : '/';
    ok(sr_fold(sr_bytes_of(path, sizeof path), out) == SR_FOLD_MAX, "also one of many ids");
    memset(path, '7', sizeof path);
    path[0] = '/';
    is_bytes(out, sr_fold(sr_bytes_of(path, sizeof path), out), "/:id", "a long id is one");
}

/* Of ids as programs make them, few are taken for words, whatever their alphabet */
static void ids(void)
{
    static const char *const alphabets[] = {
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "abcdefghijklmnopqrstuvwxyz234567",
        "0123456789ABCDEFGHJKMNPQRSTVWXYZ", "0123456789abcdef"};
    srandom(1);
    for (size_t a = 0; a < sizeof alphabets / sizeof *alphabets; a++) {
        int missed = 0;
        for (int i = 0; i < 10000; i++) {
            char word[26];
            for (size_t c = 0; c < sizeof word; c++)
                word[c] = alphabets[a][(size_t)random() % strlen(alphabets[a])];
            missed += !sr_fold_is_id(sr_bytes_of(word, sizeof word));
        }
        if (!ok(missed < 2000, "ids of %.10s...", alphabets[a]))
            printf("# %d of 10000 missed\n", missed);
    }
}

int main(void)
{
    words();
    lengths();
    ids();
    return done_testing();
}
