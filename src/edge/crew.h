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

/*
 * A note could not be received for lack of memory, or has to wait. The socket stays readable, so without a
 * pause the loop would spin. `paused` is true until the line is watched again.
 */
void sr_crew_pause(sr_edge *ed, sr_source *line, bool *paused);

#endif
