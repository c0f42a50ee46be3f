#ifndef SIRIUS_CALLS_H
#define SIRIUS_CALLS_H
/*
 * calls: where the time of the application goes, and what it has died of, as Perl values;
 * lib/Sirius/Scoreboard.pm documents them.
 */
#include "perlapi.h"

#include "share/scoreboard.h"

/* Hashes, mortal. */
HV *sirius_board_calls(pTHX_ const sr_scoreboard *s);
HV *sirius_board_exceptions(pTHX_ const sr_scoreboard *s);

#endif
