/* date: against gmtime and strftime, in the C locale. */
#include "../../src/http/date.h"

#include <time.h>

#include "guard.h"
#include "tap.h"

static bool right(int64_t epoch, const char *want)
{
    char *out = guard_end() - SR_DATE_LEN;
    sr_date_format(out, epoch);
    bool same = memcmp(out, want, SR_DATE_LEN) == 0;
    if (!same)
        printf("# %lld: got %.29s, want %s\n", (long long)epoch, out, want);
    return same;
}

static bool reads(const char *text, int64_t want)
{
    int64_t epoch = -1;
    size_t len = strlen(text);
    bool is_date = sr_date_parse(sr_bytes_of(guarded(text, len), len), 784111777, &epoch);
    bool same = want < 0 ? !is_date : is_date && epoch == want;
    if (!same)
        printf("# %s: got %lld, want %lld\n", text, (long long)epoch, (long long)want);
    return same;
}

static void parsed(void)
{
    static const char *const wrong[] = {"",
                                        "Sun",
                                        "Sun, 06 Nov 1994 08:49:37",
                                        "Sun, 06 Nov 1994 08:49:37 CET",
                                        "Sun, 06 nov 1994 08:49:37 GMT",
                                        "Sun, 6 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 24:00:00 GMT",
                                        "Sun, 06 Nov 1994 08:60:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:61 GMT",
                                        "Sun, 00 Nov 1994 08:49:37 GMT",
                                        "Sun, 31 Nov 1994 08:49:37 GMT",
                                        "Wed, 29 Feb 1995 08:49:37 GMT",
                                        "Thu, 29 Feb 2100 08:49:37 GMT",
                                        "Sun, 06 Nov 199x 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:37 GMT ",
                                        "Sunday, 06-Nov-1994 08:49:37 GMT",
                                        "Sun, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov 06 08:49:37 1994 GMT",
                                        "Sun Nov 6 08:49:37 1994",
                                        "784111777",
                                        "Sun, -6 Nov 1994 08:49:37 GMT"};
    ok(reads("Sun, 06 Nov 1994 08:49:37 GMT", 784111777), "IMF-fixdate");
    ok(reads("Sunday, 06-Nov-94 08:49:37 GMT", 784111777), "RFC 850");
    ok(reads("Wednesday, 06-Nov-44 08:49:37 GMT", 2362034977), "50 years ahead");
    int64_t past = 0;
    ok(sr_date_parse(SR_BYTES("Tuesday, 06-Nov-45 08:49:37 GMT"), 784111777, &past) && past == -762189023,
       "more is in the past");
    ok(reads("Sun Nov  6 08:49:37 1994", 784111777), "asctime");
    ok(reads("Wed Nov 16 08:49:37 1994", 784975777), "with two digits");
    ok(reads("Mon, 06 Nov 1994 08:49:37 GMT", 784111777), "a wrong day of the week");
    ok(reads("Tue, 29 Feb 2000 23:59:60 GMT", 951868800), "a leap day, and a leap second");
    bool all = true;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        all = reads(wrong[i], -1) && all;
    ok(all, "what is no date");
    for (int64_t epoch = 0; epoch < 253402300800 && all; epoch += 86400 * 11 + 12345) {
        char out[SR_DATE_LEN + 1] = "";
        sr_date_format(out, epoch);
        all = reads(out, epoch);
    }
    ok(all, "the inverse of format, 8000 years long");
}

int main(void)
{
    ok(right(0, "Thu, 01 Jan 1970 00:00:00 GMT"), "the epoch");
    ok(right(784111777, "Sun, 06 Nov 1994 08:49:37 GMT"), "the example of RFC 9110");
    ok(right(951782400, "Tue, 29 Feb 2000 00:00:00 GMT"), "a leap day of a century");
    ok(right(4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"), "a century without one");
    ok(right(2147483648, "Tue, 19 Jan 2038 03:14:08 GMT"), "past 31 bits");
    ok(right(253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"), "the last second");

    bool same = true;
    const int64_t end = sizeof(time_t) < 8 ? INT32_MAX : 253402300800;
    for (int64_t epoch = 0; epoch < end && same; epoch += 86400 * 11 + 12345) {
        char want[64];
        time_t t = (time_t)epoch;
        struct tm tm;
        strftime(want, sizeof want, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&t, &tm));
        same = right(epoch, want);
    }
    ok(same, "the same as strftime, 8000 years long");
    parsed();
    return done_testing();
}
