#ifndef SR_DATE_H
#define SR_DATE_H
/* date: HTTP-date, "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 5.6.7). Pure, no locale, no tm, any thread. */
#include "../base/bytes.h"

enum { SR_DATE_LEN = 29 };

/*
 * Writes exactly SR_DATE_LEN bytes, no NUL. `epoch` is seconds since 1970 UTC, 0 <= epoch < 253402300800
 * (year 9999).
 */
void sr_date_format(char out[SR_DATE_LEN], int64_t epoch);

/*
 * Reads a date in any of the three forms of RFC 9110 5.6.7, without looking at the day of the week. `now` is
 * needed for years of two digits, which are at most 50 years ahead. False: it is not a date.
 */
bool sr_date_parse(sr_bytes s, int64_t now, int64_t *epoch);

#endif
