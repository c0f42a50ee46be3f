#ifndef SIRIUS_CALL_H
#define SIRIUS_CALL_H
/* call: calls code of the application. Exceptions, jumps and exit in it return to the caller. */
#include "perlapi.h"

/*
 * Before 5.24 perl left the temporaries of a sub to its caller. A copy of %env among them would still hold
 * psgix.io.
 */
enum { SIRIUS_FREES_TEMPORARIES = PERL_VERSION >= 24 };

/*
 * Calls code of the application, outside, on a stack of its own, so that last, next and goto can't leave it.
 * NULL: it died, and $@ says of what.
 */
SV *sirius_call(pTHX_ sirius *s, SV *code, SV *arg1, SV *arg2);

/* Calls a sub of the server that looks at what the application has made. NULL: it died, see $@. */
SV *sirius_call_own(pTHX_ sirius *s, const char *name, SV *arg1, SV *arg2);

#endif
