#ifndef SIRIUS_RESPONDER_H
#define SIRIUS_RESPONDER_H
/* responder: the callback of PSGI that takes a response, with a body or for a writer. */
#include "perlapi.h"

/* Of the request at hand. Mortal. */
SV *sirius_responder(pTHX_ sirius *s);

#endif
