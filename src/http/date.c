#include "date.h"

#include <string.h>

static void two_digits(char *out, unsigned n)
{
    out[0] = (char)('0' + n / 10);
    out[1] = (char)('0' + n % 10);
}

/*
 * Converts days since 1970-01-01 to year, month and day. Years start on 1 March here, so that the leap day is
 * the last day of its year. Eras of 400 years (146097 days) start on 0000-03-01.
 */
static void civil(uint32_t days, unsigned *year, unsigned *month, unsigned *day)
{
    days += 719468; /* the days from 0000-03-01 to 1970-01-01 */
    uint32_t era = days / 146097, of_era = days % 146097;
    uint32_t year_of_era = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint32_t of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    uint32_t shifted = (5 * of_year + 2) / 153; /* 0 is March; any five months from there have 153 days */
    *day = of_year - (153 * shifted + 2) / 5 + 1;
    *month = shifted < 10 ? shifted + 3 : shifted - 9;
    *year = year_of_era + era * 400 + (*month <= 2);
}

void sr_date_format(char out[SR_DATE_LEN], int64_t epoch)
{
    static const char weekdays[] = "ThuFriSatSunMonTueWed"; /* 1970-01-01 was a Thursday */
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    uint32_t days = (uint32_t)(epoch / 86400), second = (uint32_t)(epoch % 86400);
    unsigned year, month, day;
    civil(days, &year, &month, &day);

    memcpy(out, "Thu, 01 Jan 1970 00:00:00 GMT", SR_DATE_LEN);
    memcpy(out, weekdays + days % 7 * 3, 3);
    two_digits(out + 5, day);
    memcpy(out + 8, months + (month - 1) * 3, 3);
    two_digits(out + 12, year / 100);
    two_digits(out + 14, year % 100);
    two_digits(out + 17, second / 3600);
    two_digits(out + 20, second / 60 % 60);
    two_digits(out + 23, second % 60);
}
