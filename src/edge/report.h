#ifndef SR_REPORT_H
#define SR_REPORT_H
/*
 * report: what an edge tells the supervisor, in lines. Without a supervisor they are lines of the log. For
 * all files of the edge.
 */
#include "edge.h"

/* Writes one line. False: the supervisor does not read. */
bool sr_report(sr_edge *ed, const char *text);

/*
 * Writes how a line begins and returns its length: "PID WHAT ", or "[sirius PID] error: " for the log. `what`
 * is a word that Sirius::Edge::Group knows. `out` has room for SR_REPORT_BEGIN bytes.
 */
int sr_report_begin(const sr_edge *ed, char *out, int32_t pid, const char *what);
enum { SR_REPORT_BEGIN = 48 };

/*
 * "PID timeout GET /path ran for 60.0 s, the client got 504". Without a supervisor it becomes a line of the
 * log.
 */
bool sr_report_late(sr_edge *ed, uint32_t slot, int32_t pid, const char *what, int64_t ns, const char *end);

/*
 * Tells the supervisor that a worker has ended with this request, and what its client got, `end`: "the client
 * got 502".
 */
void sr_report_lost(sr_edge *ed, uint32_t slot, int32_t pid, const char *end);

#endif
