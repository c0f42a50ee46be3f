#ifndef SR_LOGTIME_H
#define SR_LOGTIME_H
/*
 * time: local time in a format of strftime, in English in any locale. The text is made once a second.
 *
 * Conversions: a A b B c C d D e F g G h H I j k l m M n p P r R s S t T u U V w W x X y Y z Z and %, each
 * also with E or O before it, which change nothing; N is the fraction of the second in 9 digits, 3N and 6N in
 * so many, once in a format; :z is +hh:mm.
 *
 * Owner: the struct that embeds it; sr_logtime_free returns its memory. The format belongs to the caller.
 * Thread: one at a time. Reads no clock; the zone is TZ of the environment, or that of the system, and is
 * looked at once a second.
 */
#include "../base/buffer.h"

#define SR_LOGTIME_UNKNOWN INT64_MIN

typedef struct sr_logtime {
    sr_bytes format;
    int64_t second; /* that the text is for */
    sr_buffer text;
    size_t fraction; /* where its digits stand in the text */
    unsigned digits; /* 0: it has none */
} sr_logtime;

/*
 * NULL: the format is valid. Else a static text that says why not and ends with a colon; *which is the
 * conversion at fault.
 */
const char *sr_logtime_check(sr_bytes format, sr_bytes *which);

void sr_logtime_init(sr_logtime *t, sr_bytes format); /* a format that was checked */
void sr_logtime_free(sr_logtime *t);

/*
 * The text of an instant, ns since 1970, valid until the next call. NULL at: no memory, unknown, or no such
 * year.
 */
sr_bytes sr_logtime_text(sr_logtime *t, int64_t wall);

#endif
