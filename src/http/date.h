#ifndef SR_DATE_H
#define SR_DATE_H
/* date: IMF-fixdate, "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110 5.6.7). Pure, no locale, no tm, any thread. */
#include <stdint.h>

enum { SR_DATE_LEN = 29 };

/* Writes exactly SR_DATE_LEN bytes, no NUL. `epoch` is seconds since 1970 UTC, 0 <= epoch < 253402300800
 * (year 9999). */
void sr_date_format(char out[SR_DATE_LEN], int64_t epoch);

#endif
