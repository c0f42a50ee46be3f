#ifndef SR_LANERULES_H
#define SR_LANERULES_H
/*
 * lanerules: which requests belong to which lane, as --lane says.
 *
 * A client must not get around a lane by another spelling of its path, so a rule holds for all that an
 * application may take for its prefix: percent-encoded or not, in any letter case, and when the path has
 * empty segments or dot segments, both as it is and with them resolved. Of the lanes to which the readings of
 * a path lead, it belongs to that with the fewest places, so that no spelling leads out of a small lane into
 * a larger one. What belongs to a lane by mistake waits there; that harms nobody else.
 *
 * Owner: the settings of the edge; texts point into its words. Pure; any thread.
 */
#include "../http/request.h"
#include "../share/lane.h"

typedef struct sr_lanerule {
    sr_bytes text;      /* as given: "/report", "POST /import", "X-Class: batch" */
    sr_bytes method;    /* len 0: any. GET is HEAD too */
    sr_bytes prefix;    /* of the path; len 0: the rule is of a field */
    sr_bytes field;     /* its name; a trusted proxy must have sent it */
    sr_bytes value;     /* of that field */
    uint64_t key;       /* of the text, not 0 */
    uint64_t limit;     /* requests at a time, at least 1 */
    uint64_t queue;     /* requests that may wait */
    int64_t timeout_ns; /* that each of them may wait; 0: no limit */
} sr_lanerule;

typedef struct sr_lanerules {
    /*
     * the first one that holds for a reading is the one: fields, then longer prefixes, those with a method
     * first
     */
    sr_lanerule at[SR_LANES_MAX];
    uint32_t n;
} sr_lanerules;

/* Adds "LIMIT,QUEUE,SECONDS,TEXT". NULL, or why not: a static text that continues "lane=...". */
const char *sr_lanerules_add(sr_lanerules *all, const char *word);

/*
 * The number of the rule that holds for the request; -1: none does. `trusted`: a trusted proxy has sent it.
 */
int sr_lanerules_find(const sr_lanerules *all, const sr_request *r, const char *base, bool trusted);

#endif
