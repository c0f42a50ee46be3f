#ifndef SR_CREW_H
#define SR_CREW_H
/*
 * crew: the workers as the edge sees them, from the first note of each to its end.
 *
 * A worker connects to the lobby (share/door.h) and says hello with its row and the key of the server. The
 * edge answers with the queue and with a ring for the worker alone, and opens a pidfd, which tells when the
 * process ends. From then on the connection is the worker's line: there it asks for files of its request and
 * passes files of its reply.
 *
 * Trust: none. The kernel says which process has sent a note. A worker that sends what it must not is broken:
 * nothing more is read from it, its request ends with 502, and the supervisor is told to kill it.
 * Failure: without memory or a descriptor a line, or the lobby, is left alone for 100 ms.
 * Called by: the loop (edge.c), unless something else is said.
 */
#include "edge.h"

/* --- which worker has which request; for all files of the edge --- */

/*
 * The row of the worker that has the request of the slot: as bound, else as the claim in the queue says. -1:
 * none.
 */
int32_t sr_crew_holder(const sr_edge *ed, uint32_t slot);

/*
 * The worker speaks about the request `number` of the slot. True: it has that request, and from now on no
 * other worker is believed about it. False: the request is over or another worker's, or this worker has
 * another one.
 */
bool sr_crew_bind(sr_edge *ed, sr_edge_worker *m, uint32_t slot, uint64_t number);

/* The worker broke the rules; `why` continues "worker 4711" in the log. Does nothing the second time. */
void sr_crew_broken(sr_edge *ed, sr_edge_worker *m, const char *why);

/* --- events --- */

/* Somebody has connected to the lobby. */
void sr_crew_lobby(sr_edge *ed);
/* A connection to the lobby that has not said hello yet has sent something. */
void sr_crew_visitor(sr_edge *ed, sr_source *s);
/* A worker has sent a note. */
void sr_crew_line(sr_edge *ed, sr_edge_worker *m);

/* The process of the worker has ended. What it has written to its ring in whole records still counts. */
void sr_crew_ended(sr_edge *ed, sr_edge_worker *m);

/* In each step of the loop: watch the lobby, or lines, again when the pause is over. */
void sr_crew_resume_lobby(sr_edge *ed);
void sr_crew_resume_lines(sr_edge *ed);

#endif
