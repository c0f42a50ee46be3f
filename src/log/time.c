#include "time.h"

#include <stdio.h>
#include <time.h>

enum { NANOSECOND_DIGITS = 9, CONVERTED_MAX = 80 };

static const int64_t SECOND = 1000000000;

static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};

typedef struct conversion {
    char letter;
    unsigned digits; /* of %3N, %6N, %9N */
    bool colon;      /* %:z */
    size_t len;      /* of the whole conversion, its % included */
} conversion;

static bool one_of(char c, const char *set)
{
    return c && strchr(set, c) != NULL;
}

/* Looks up what the % at i begins. False: it is not known. */
static bool parse(sr_bytes f, size_t i, conversion *c)
{
    size_t from = i++;
    *c = (conversion){0};
    if (i + 1 < f.len && ((f.at[i] == 'E' && one_of(f.at[i + 1], "cCxXyY")) ||
                          (f.at[i] == 'O' && one_of(f.at[i + 1], "deHImMSuUVwWy"))))
        i++;
    else if (i + 1 < f.len && one_of(f.at[i], "369") && f.at[i + 1] == 'N')
        c->digits = (unsigned)(f.at[i++] - '0');
    else if (i + 1 < f.len && f.at[i] == ':' && f.at[i + 1] == 'z')
        c->colon = f.at[i++] == ':';
    if (i == f.len || !one_of(f.at[i], "aAbBcCdDeFgGhHIjklmMnNpPrRsStTuUVwWxXyYzZ%"))
        return false;
    c->letter = f.at[i];
    if (c->letter == 'N' && !c->digits)
        c->digits = NANOSECOND_DIGITS;
    c->len = i + 1 - from;
    return true;
}

const char *sr_logtime_check(sr_bytes format, sr_bytes *which)
{
    unsigned fractions = 0;
    for (size_t i = 0; i < format.len; i++) {
        if (format.at[i] != '%')
            continue;
        conversion c;
        *which = sr_bytes_of(format.at + i, i + 1 < format.len ? 2 : 1);
        if (!parse(format, i, &c))
            return "unknown time conversion:";
        which->len = c.len;
        if (c.letter == 'N' && fractions++)
            return "repeated time conversion:";
        i += c.len - 1;
    }
    return NULL;
}

void sr_logtime_init(sr_logtime *t, sr_bytes format)
{
    *t = (sr_logtime){.format = format, .second = INT64_MIN};
}

void sr_logtime_free(sr_logtime *t)
{
    sr_buffer_free(&t->text);
}

static bool add(sr_logtime *t, const char *text)
{
    return sr_buffer_add(&t->text, text, strlen(text));
}

static bool add_short(sr_logtime *t, const char *name)
{
    return sr_buffer_add(&t->text, name, 3);
}

/* Conversions that are the same in every locale are left to the C library. */
static bool add_converted(sr_logtime *t, const struct tm *tm, char letter)
{
    char out[CONVERTED_MAX], format[] = {'%', letter, 0};
    return sr_buffer_add(&t->text, out, strftime(out, sizeof out, format, tm));
}

/* %k and %l: extensions that musl does not have */
static bool add_hour(sr_logtime *t, int hour)
{
    char out[] = {hour < 10 ? ' ' : (char)('0' + hour / 10), (char)('0' + hour % 10)};
    return sr_buffer_add(&t->text, out, sizeof out);
}

static bool add_second(sr_logtime *t)
{
    char out[24];
    snprintf(out, sizeof out, "%lld", (long long)t->second);
    return add(t, out);
}

static bool add_offset(sr_logtime *t, const struct tm *tm, bool colon)
{
    char out[CONVERTED_MAX];
    size_t n = strftime(out, sizeof out, "%z", tm);
    if (!colon || n < 5)
        return sr_buffer_add(&t->text, out, n);
    return sr_buffer_add(&t->text, out, n - 2) && add(t, ":") && sr_buffer_add(&t->text, out + n - 2, 2);
}

static bool add_format(sr_logtime *t, sr_bytes f, const struct tm *tm);

static bool add_conversion(sr_logtime *t, const conversion *c, const struct tm *tm)
{
    switch (c->letter) {
    case '%':
        return add(t, "%");
    case 'a':
        return add_short(t, weekdays[tm->tm_wday]);
    case 'A':
        return add(t, weekdays[tm->tm_wday]);
    case 'b':
    case 'h':
        return add_short(t, months[tm->tm_mon]);
    case 'B':
        return add(t, months[tm->tm_mon]);
    case 'c':
        return add_format(t, SR_BYTES("%a %b %e %H:%M:%S %Y"), tm);
    case 'k':
        return add_hour(t, tm->tm_hour);
    case 'l':
        return add_hour(t, tm->tm_hour % 12 ? tm->tm_hour % 12 : 12);
    case 'n':
        return add(t, "\n");
    case 'N':
        t->fraction = sr_buffer_len(&t->text);
        t->digits = c->digits;
        return sr_buffer_add(&t->text, "000000000", c->digits);
    case 'p':
        return add(t, tm->tm_hour < 12 ? "AM" : "PM");
    case 'P':
        return add(t, tm->tm_hour < 12 ? "am" : "pm");
    case 'r':
        return add_format(t, SR_BYTES("%I:%M:%S %p"), tm);
    case 's':
        return add_second(t);
    case 't':
        return add(t, "\t");
    case 'x':
        return add_format(t, SR_BYTES("%m/%d/%y"), tm);
    case 'X':
        return add_format(t, SR_BYTES("%H:%M:%S"), tm);
    case 'z':
        return add_offset(t, tm, c->colon);
    default:
        return add_converted(t, tm, c->letter);
    }
}

static bool add_format(sr_logtime *t, sr_bytes f, const struct tm *tm)
{
    size_t from = 0;
    for (size_t i = 0; i < f.len; i++) {
        conversion c;
        if (f.at[i] != '%' || !parse(f, i, &c))
            continue;
        if (!sr_buffer_add(&t->text, f.at + from, i - from) || !add_conversion(t, &c, tm))
            return false;
        from = i + c.len;
        i = from - 1;
    }
    return sr_buffer_add(&t->text, f.at + from, f.len - from);
}

static bool render(sr_logtime *t, int64_t second)
{
    time_t seconds = (time_t)second;
    struct tm tm;
    sr_buffer_reset(&t->text);
    t->second = second;
    tzset(); /* so that localtime_r need not check whether TZ has changed */
    if (localtime_r(&seconds, &tm) && add_format(t, t->format, &tm))
        return true;
    t->second = INT64_MIN;
    return false;
}

sr_bytes sr_logtime_text(sr_logtime *t, int64_t wall)
{
    if (wall == SR_LOGTIME_UNKNOWN)
        return sr_bytes_of(NULL, 0);
    int64_t second = wall / SECOND, rest = wall % SECOND;
    if (rest < 0) {
        second--;
        rest += SECOND;
    }
    if (second != t->second && !render(t, second))
        return sr_bytes_of(NULL, 0);
    for (unsigned i = t->digits ? NANOSECOND_DIGITS : 0; i-- > 0; rest /= 10)
        if (i < t->digits)
            sr_buffer_at(&t->text)[t->fraction + i] = (char)('0' + rest % 10);
    return sr_buffer_bytes(&t->text);
}
