#ifndef SIRIUS_RESPONSE_H
#define SIRIUS_RESPONSE_H
/* response: sends what an application has returned. Inside. */
#include "sirius.h"

/* Sends what the application has returned, which may be any value. *writer is set if it is a stream. */
void sirius_respond(pTHX_ sirius *s, SV *res, bool may_stream, SV **writer);

/* Logs an error, then answers 500, or cuts the response if its head was sent. */
void sirius_fail(pTHX_ sirius *s, const char *what, SV *error);

#endif
