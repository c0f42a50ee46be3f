#ifndef SIRIUS_RESPONSE_H
#define SIRIUS_RESPONSE_H
/* response: sends what an application has returned. Inside. */
#include "perlapi.h"

#include <sys/uio.h>

/* Memory that one response after the other uses. Owner: the request loop. */
typedef struct sirius_scratch {
    struct iovec *iov; /* as many as the largest response so far has needed. Owned */
    size_t iov_cap;
    char *piece; /* a small file; NULL: there was none yet. Owned */
} sirius_scratch;

void sirius_scratch_free(sirius_scratch *scratch); /* zeroed at first */

/* Sends what the application has returned, which may be any value. *writer is set if it is a stream. */
void sirius_respond(pTHX_ sirius *s, SV *res, bool may_stream, SV **writer);

/* Logs an error, then answers 500, or cuts the response if its head was sent. */
void sirius_fail(pTHX_ sirius *s, const char *what, SV *error);

#endif
