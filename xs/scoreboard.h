#ifndef SIRIUS_XS_SCOREBOARD_H
#define SIRIUS_XS_SCOREBOARD_H
/* scoreboard: Sirius::Scoreboard, for Sirius.xs. On the thread of perl. */
#include "sirius.h"

/* An object that owns s and is the one of this process from now on, until it is freed. Counted */
SV *sirius_board_new(pTHX_ sr_scoreboard *s);
SV *sirius_board_current(pTHX); /* another reference to it, or undef. Counted */
void sirius_board_free(pTHX_ SV *self, sr_scoreboard *s);

HV *sirius_board_row(pTHX_ const sr_row *r);                             /* of a worker; mortal */
HV *sirius_board_edge(pTHX_ const sr_row *r);                            /* of an edge; mortal */
HV *sirius_board_totals(pTHX_ const sr_scoreboard *s);                   /* mortal; with latency and queue */
HV *sirius_board_troubles(pTHX_ const sr_scoreboard *s);                 /* mortal; name => [count, errno] */
bool sirius_board_exited(sr_scoreboard *s, const char *name, bool edge); /* false: there is no such cause */

/* The application says what it does. Nothing, when this process serves no request */
void sirius_mark(pTHX_ SV *text);

#endif
