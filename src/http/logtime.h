#ifndef SR_LOGTIME_H
#define SR_LOGTIME_H
/*
 * logtime: local time in a format of strftime, in English whatever the locale. The text is made once a second.
 *
 * Conversions: a A b B c C d D e F g G h H I j k l m M n p P r R s S t T u U V w W x X y Y z Z and %, each also with E or
 * O before it, which change nothing; N is the fraction of the second in 9 digits, 3N and 6N in so many, once in a format;
 * :z is +hh:mm.
 *
 * Owner: whoever embeds it; sr_logtime_free returns its memory. The format is borrowed. Not for two threads at once. Reads
 * no clock; the zone is the environment's TZ, or the system's, looked at anew each second.
 */
#include "../base/buffer.h"

#define SR_LOGTIME_UNKNOWN INT64_MIN

typedef struct sr_logtime {
    sr_bytes format;
    int64_t second; /* the text is of it */
    sr_buffer text;
    size_t fraction; /* where its digits stand in the text */
    unsigned digits; /* 0: it has none */
} sr_logtime;

/* NULL: it can be used. Else why not, a static text that ends with a colon, and *which is the conversion at fault. */
const char *sr_logtime_check(sr_bytes format, sr_bytes *which);

void sr_logtime_init(sr_logtime *t, sr_bytes format); /* one that was checked */
void sr_logtime_free(sr_logtime *t);

/* The text of an instant, ns since 1970, until the next call. NULL at: no memory, unknown, or no such year. */
sr_bytes sr_logtime_text(sr_logtime *t, int64_t wall);

#endif
