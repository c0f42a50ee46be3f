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

int main(void)
{
    ok(right(0, "Thu, 01 Jan 1970 00:00:00 GMT"), "the epoch");
    ok(right(784111777, "Sun, 06 Nov 1994 08:49:37 GMT"), "the example of RFC 9110");
    ok(right(951782400, "Tue, 29 Feb 2000 00:00:00 GMT"), "a leap day of a century");
    ok(right(4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"), "a century without one");
    ok(right(2147483648, "Tue, 19 Jan 2038 03:14:08 GMT"), "past 31 bits");
    ok(right(253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"), "the last second");

    bool same = true;
    for (int64_t epoch = 0; epoch < 253402300800 && same; epoch += 86400 * 11 + 12345) {
        char want[64];
        time_t t = (time_t)epoch;
        struct tm tm;
        strftime(want, sizeof want, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&t, &tm));
        same = right(epoch, want);
    }
    ok(same, "the same as strftime, 8000 years long");
    return done_testing();
}
