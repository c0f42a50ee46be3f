#ifndef SIRIUS_STREAM_H
#define SIRIUS_STREAM_H
/* stream: callbacks of PSGI for a response in pieces: writer, early hints. */
#include "perlapi.h"

#include "base/bytes.h"

/* What a turn sends in pieces. */
typedef struct sirius_stream {
    SV *sending; /* the scalar whose bytes a writer sends; NULL: none, or they can't change */
    const char *sending_at;
    SV *died;     /* what a handler of a signal died of. Counted */
    bool writing; /* something waits for the client: handlers of signals may run */
    bool catches; /* code of the application waits for that, and is told if such a handler dies */
} sirius_stream;

void sirius_stream_boot(pTHX);
SV *sirius_writer(pTHX_ sirius *s);
SV *sirius_informational(pTHX_ UV serial);

/* Sends `bytes`, which are those of `data`. False: the client is gone. */
bool sirius_stream_send(pTHX_ sirius *s, SV *data, sr_bytes bytes, bool wait);
bool sirius_stream_end(pTHX_ sirius *s);
bool sirius_interrupted(void); /* for sr_worker.interrupted */

/*
 * Around a call by the application that may wait for the client: a handler of a signal that dies meanwhile
 * dies in `end`, when there is nothing of the server left to jump over. Elsewhere that is logged, and the
 * wait goes on. `end` gets the result of the first.
 */
static inline bool sirius_catch(sirius_stream *t)
{
    bool outer = t->catches;
    t->catches = true;
    return outer;
}
void sirius_catch_end(pTHX_ sirius *s, bool outer); /* outside. Croaks */

/* Runs the handlers of signals that have come. One that dies is logged. */
void sirius_signals(pTHX_ sirius *s);

#endif
