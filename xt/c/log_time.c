/* logtime: against strftime in the C locale, and what strftime has not. */
#include "../../src/log/time.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tap.h"

static void standard(void)
{
    static const char letters[] = "aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyYzZ%";
    static const char *const zones[] = {"UTC0", "EST5EDT,M3.2.0,M11.1.0", "XYZ-3:30",
                                        "LHST-10:30LHDT-11,M10.1.0,M4.1.0"};
    bool same = true;
    for (size_t z = 0; z < sizeof zones / sizeof *zones; z++) {
        setenv("TZ", zones[z], 1);
        tzset();
        for (size_t i = 0; letters[i] && same; i++) {
            char format[] = {'%', letters[i], 0}, want[200];
#ifndef __GLIBC__
            if (strchr("klP", letters[i])) /* musl has none */
                continue;
#endif
            sr_logtime t;
            sr_logtime_init(&t, sr_bytes_of(format, 2));
            for (int64_t second = -86400 * 400; second < 4102444800 && same; second += 86400 * 11 + 12345) {
                time_t seconds = (time_t)second;
                struct tm tm;
                size_t len = strftime(want, sizeof want, format, localtime_r(&seconds, &tm));
                sr_bytes got = sr_logtime_text(&t, second * 1000000000 + 999999999);
                same = got.len == len && !memcmp(got.at, want, len);
                if (!same)
                    printf("# %s %s %lld: %.*s, want %s\n", zones[z], format, (long long)second, (int)got.len,
                           got.at, want);
            }
            sr_logtime_free(&t);
        }
    }
    ok(same, "the same as strftime, 130 years long, in four zones");
}

static void own(void)
{
    static const struct {
        const char *format;
        int64_t wall;
        const char *want;
    } formats[] = {
        {"%s %N|", 1700000000123456789, "1700000000 123456789|"},
        {"%3N %S", 1700000000123456789, "123 20"},
        {"%6N", 1700000000000000001, "000000"},
        {"%s.%9N", -1, "-1.999999999"},
        {"%:z %z", 0, "+03:30 +0330"},
        {"%Ex %Oy", 0, "01/01/70 70"},
        {"%k|%l|%P", 0, " 3| 3|am"},
        {"%k|%l|%P", 30600 * 1000000000LL, "12|12|pm"},
        {"%k|%l|%P", 43200 * 1000000000LL, "15| 3|pm"},
        {"%k|%l|%P", 73800 * 1000000000LL, " 0|12|am"},
        {"", 0, ""},
        {"no time", 0, "no time"},
    };
    setenv("TZ", "XYZ-3:30", 1);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        sr_logtime t;
        sr_logtime_init(&t, sr_bytes_of(formats[i].format, strlen(formats[i].format)));
        sr_bytes got = sr_logtime_text(&t, formats[i].wall);
        is_bytes(got.at, got.len, formats[i].want, formats[i].format);
        ok(!sr_logtime_text(&t, SR_LOGTIME_UNKNOWN).at, "unknown");
        got = sr_logtime_text(&t, formats[i].wall);
        is_bytes(got.at, got.len, formats[i].want, "again");
        sr_logtime_free(&t);
    }
}

int main(void)
{
    standard();
    own();
    return done_testing();
}
