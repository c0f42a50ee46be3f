#ifndef SIRIUS_STACK_H
#define SIRIUS_STACK_H
/* stack: in which subs of Perl another process is. */
#include "sirius.h"

/*
 * The subs of Perl in which a worker forked by this process is, innermost first: "main::handler at app.psgi line 12". A new
 * array. NULL with errno: its memory is not readable, or makes no sense.
 */
AV *sirius_stack(pTHX_ IV pid);

#endif
