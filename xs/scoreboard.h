#ifndef SIRIUS_XS_SCOREBOARD_H
#define SIRIUS_XS_SCOREBOARD_H
/* scoreboard: the class Sirius::Scoreboard, as Sirius.xs needs it. Thread: that of perl. */
#include "perlapi.h"

#include "share/scoreboard.h"

/* Makes an object that owns s, and that is the scoreboard of this process until it is freed. Counted */
SV *sirius_board_new(pTHX_ sr_scoreboard *s);
SV *sirius_board_seen(pTHX_ sr_scoreboard *s); /* the same, but not that of this process. Counted */
SV *sirius_board_current(pTHX);                /* a new reference to that object, or undef. Counted */
void sirius_board_free(pTHX_ SV *self, sr_scoreboard *s);

/* Hashes for Perl, mortal; lib/Sirius/Scoreboard.pm documents them. */
HV *sirius_board_row(pTHX_ const sr_row *r); /* of a worker */
AV *sirius_board_request(pTHX_ const sr_row *r,
                         UV number);          /* number, pid, began, line: a new array; NULL: none runs */
HV *sirius_board_edge(pTHX_ const sr_row *r); /* of an edge */
HV *sirius_board_totals(pTHX_ const sr_scoreboard *s);
AV *sirius_board_lanes(pTHX_ const sr_scoreboard *s);    /* a hash for each lane, of all edges together */
HV *sirius_board_troubles(pTHX_ const sr_scoreboard *s); /* name => [count, errno] */

/* Counts the end of a worker, or of an edge, by the name of its cause. False: there is no such cause. */
bool sirius_board_exited(sr_scoreboard *s, const char *name, bool edge);

/* What the application says about its request. Does nothing in a process that serves none. */
void sirius_mark(pTHX_ SV *text);

#endif
