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

/* The other way round: days since 1970-01-01 until that day. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    year -= month <= 2; /* years start on 1 March */
    int64_t era = year / 400, of_era = year % 400;
    int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + leap;
}

typedef struct parts {
    int year, month, day, hour, minute, second;
} parts;

/* A name of a month, 1 to 12; 0: it is none */
static int month_of(const char *at)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int i = 0; i < 12; i++)
        if (memcmp(at, months + (size_t)i * 3, 3) == 0)
            return i + 1;
    return 0;
}

/*
 * Compares s with a pattern: d is a digit, s a digit or a space for 0, a a letter, mmm the name of a month;
 * all else is itself. Numbers go to `out` in the order in which the pattern has them; a month to *month.
 */
static bool shaped(sr_bytes s, const char *pattern, int *out, int *month)
{
    size_t len = strlen(pattern);
    if (s.len != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = s.at[i], before = i ? pattern[i - 1] : ' ';
        bool number = pattern[i] == 'd' || pattern[i] == 's';
        if (number) {
            bool digit = c >= '0' && c <= '9', first = before != 'd' && before != 's';
            if (!digit && !(pattern[i] == 's' && c == ' '))
                return false;
            out += first;
            *out = (first ? 0 : *out * 10) + (digit ? c - '0' : 0);
        } else if (pattern[i] == 'm') {
            if (!(*month = month_of(s.at + i)))
                return false;
            i += 2;
        } else if (pattern[i] == 'a') {
            if ((unsigned)((c | 0x20) - 'a') > 25U)
                return false;
        } else if (c != pattern[i]) {
            return false;
        }
    }
    return true;
}

/* The two digits of a year mean the latest one that is not more than 50 years ahead (RFC 9110 5.6.7). */
static int whole_year(int two, int64_t now)
{
    char text[SR_DATE_LEN];
    sr_date_format(text, now > 0 ? now : 0);
    int present = (text[12] - '0') * 1000 + (text[13] - '0') * 100 + (text[14] - '0') * 10 + text[15] - '0';
    int year = present - present % 100 + two;
    return year > present + 50 ? year - 100 : year + 100 <= present + 50 ? year + 100 : year;
}

static bool read(sr_bytes s, int64_t now, parts *p)
{
    int n[6]; /* shaped() begins at the second */
    if (shaped(s, "aaa, dd mmm dddd dd:dd:dd GMT", n, &p->month)) {
        *p = (parts){n[2], p->month, n[1], n[3], n[4], n[5]};
        return true;
    }
    if (shaped(s, "aaa mmm sd dd:dd:dd dddd", n, &p->month)) {
        *p = (parts){n[5], p->month, n[1], n[2], n[3], n[4]};
        return true;
    }
    const char *comma = s.len ? memchr(s.at, ',', s.len) : NULL;
    size_t day = comma ? (size_t)(comma - s.at) : 0;
    if (day < 6 || day > 9) /* Monday, Wednesday */
        return false;
    if (!shaped(sr_bytes_of(comma, s.len - day), ", dd-mmm-dd dd:dd:dd GMT", n, &p->month))
        return false;
    *p = (parts){whole_year(n[2], now), p->month, n[1], n[3], n[4], n[5]};
    return true;
}

bool sr_date_parse(sr_bytes s, int64_t now, int64_t *epoch)
{
    parts p;
    if (!read(s, now, &p) || p.day < 1 || p.day > days_in(p.year, p.month) || p.hour > 23 || p.minute > 59 ||
        p.second > 60) /* 60: a leap second */
        return false;
    *epoch = days_of(p.year, p.month, p.day) * 86400 + p.hour * 3600 + p.minute * 60 + p.second;
    return true;
}
