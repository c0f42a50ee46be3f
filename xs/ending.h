#ifndef SIRIUS_ENDING_H
#define SIRIUS_ENDING_H
/*
 * ending: when a worker has to end, and why: it has served so many requests, has become too large, or the
 * application wants it (psgix.harakiri.commit).
 *
 * Owner: the request loop. Thread: that of perl. Failure: where the size can't be read it is 0, so that limit
 * is never reached.
 */
#include "perlapi.h"

#include "base/resident.h"

typedef struct sirius_ending {
    uint64_t max_requests, soon_requests; /* 0: there is no limit */
    uint64_t max_rss;                     /* bytes; likewise */
    uint64_t served, rss;
    sr_resident resident;
    bool soon_said;  /* a successor was asked for */
    bool told;       /* the generation knows that the worker ends */
    const char *why; /* static; NULL: it need not end */
} sirius_ending;

void sirius_ending_open(sirius_ending *e, uint64_t max_requests, uint64_t soon_requests, uint64_t max_rss);
void sirius_ending_close(sirius_ending *e); /* also of one that is zeroed */

/* Returns "retiring" once, so that the generation is told, and then `why`. */
const char *sirius_ending_reason(sirius_ending *e, const char *why);

/*
 * After each request: whether a limit is reached, which sets `why`. Returns what to tell the generation,
 * since the worker will soon need a successor, a static text; NULL: nothing.
 */
const char *sirius_ending_served(sirius_ending *e);

#endif
