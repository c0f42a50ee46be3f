/* cursor: bytes in pieces, some of them empty */
#include "base/cursor.h"

#include "tap.h"

static struct iovec pieces[] = {{"", 0}, {"one", 3}, {NULL, 0}, {"fourfive", 8}, {"", 0}};

enum { ALL = 11 };

/* From each place: what is left, and what a copy brings */
static void from(size_t at)
{
    const char *all = "onefourfive";
    sr_cursor c = {pieces, 5, 0};
    sr_cursor_skip(&c, at);
    is_int((long long)sr_cursor_left(&c, SIZE_MAX), (long long)(ALL - at), "what is left");
    ok(sr_cursor_left(&c, 2) >= (ALL - at < 2 ? ALL - at : 2), "or at least two");
    for (size_t n = 0; n <= ALL + 1; n++) {
        char to[ALL + 1] = "";
        sr_cursor copy = c;
        size_t some = n < ALL - at ? n : ALL - at, got = sr_cursor_copy(&copy, to, n);
        if (got != some || memcmp(to, all + at, some) != 0 ||
            sr_cursor_left(&copy, SIZE_MAX) != ALL - at - some)
            ok(false, "a copy of %zu at %zu", n, at);
    }
    char to[ALL + 1] = "";
    size_t got = 0;
    while (c.n) {
        sr_bytes here = sr_cursor_here(&c);
        if (here.len)
            memcpy(to + got, here.at, here.len);
        got += here.len;
        sr_cursor_skip(&c, here.len);
    }
    ok(got == ALL - at && strcmp(to, all + at) == 0, "and piece by piece, from %zu", at);
}

int main(void)
{
    sr_cursor none = {NULL, 0, 0};
    for (size_t at = 0; at <= ALL; at++)
        from(at);
    sr_cursor_skip(&none, 1);
    ok(!sr_cursor_left(&none, 1) && !sr_cursor_here(&none).len && !sr_cursor_copy(&none, NULL, 1),
       "no pieces");
    return done_testing();
}
