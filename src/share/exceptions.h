#ifndef SR_EXCEPTIONS_H
#define SR_EXCEPTIONS_H
/*
 * exceptions: what the application has died of lately, by kind, in a table for each worker's row of the
 * scoreboard. The next worker that has the row goes on with it; readers add up the tables of all.
 *
 * Exceptions are of one kind if their first lines are the same without addresses, numbers and ids
 * (sr_exception_text). A table has SR_EXCEPTIONS_MAX kinds: a new one takes the place of that which has not
 * occurred for the longest time, whose count goes to `other`.
 *
 * Writer: one at a time, the worker. Reader: any process. A kind is under a sequence lock.
 * Trust: workers can write all of it. Readers check lengths, and show only what is no control character.
 */
#include "../base/bytes.h"
#include "../http/fold.h"

#include <stdatomic.h>

enum {
    SR_EXCEPTIONS_MAX = 16,      /* kinds of a worker */
    SR_EXCEPTIONS_SUMMED = 128,  /* of all workers together; fewer are shown */
    SR_EXCEPTION_MAX = 240,      /* bytes of its text; a multiple of 8 */
    SR_EXCEPTION_PLACE_MAX = 80, /* of them " at FILE line N"; of a longer name the end */
};

typedef struct sr_exception {
    _Atomic uint32_t sequence;  /* odd: being written */
    _Atomic uint32_t len, path; /* bytes; len 0: there is none */
    _Atomic uint64_t count;
    _Atomic int64_t first, last; /* seconds since 1970 */
    _Atomic uint64_t text[SR_EXCEPTION_MAX / sizeof(uint64_t)];
    _Atomic uint64_t of[SR_FOLD_MAX / sizeof(uint64_t)]; /* path of the last request */
} sr_exception;

typedef struct sr_exceptions {
    _Atomic uint64_t other; /* those whose kind had to give way */
    sr_exception at[SR_EXCEPTIONS_MAX];
} sr_exceptions;

/*
 * The text of a kind: the first line that is not empty, without control characters. Addresses become "0x...",
 * numbers and ids "N", but the place at the end, " at FILE line 42", stays. "[...]" in front, as loggers
 * write time and process, are left out. Cuts whole characters of UTF-8. Returns the length; 0: there is
 * nothing.
 */
size_t sr_exception_text(sr_bytes raw, char out[SR_EXCEPTION_MAX]);

/*
 * In the worker: it has occurred at `now`, seconds since 1970, in a request for `path`, as that came; len 0:
 * in none.
 */
void sr_exceptions_add(sr_exceptions *all, sr_bytes raw, sr_bytes path, int64_t now);

/* The sum of a kind over workers. */
typedef struct sr_exception_sum {
    char text[SR_EXCEPTION_MAX], path[SR_FOLD_MAX];
    uint32_t len, path_len;
    uint64_t count;
    int64_t first, last;
} sr_exception_sum;

/* Of several tables; all zero before the first. */
typedef struct sr_exception_sums {
    sr_exception_sum at[SR_EXCEPTIONS_SUMMED]; /* the last first, and no two of the same kind */
    size_t n;
    uint64_t count; /* of all exceptions, also of those that are not in the list */
} sr_exception_sums;

/* Adds a table. If the list is full, those that have not occurred for the longest time are left out. */
void sr_exceptions_sum(sr_exception_sums *sums, const sr_exceptions *table);

#endif
