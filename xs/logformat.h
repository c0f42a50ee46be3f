#ifndef SIRIUS_LOGFORMAT_H
#define SIRIUS_LOGFORMAT_H
/*
 * logformat: lines of an access log from a PSGI %env and a response. The program is src/http/logformat.h; here is where
 * its values come from.
 *
 * Thread: the Perl thread. A value that is tied or overloaded, and a handler, is Perl code and may die: who has the
 * helm lends it first, or asks for no such values.
 */
#include "http/logformat.h"
#include "sirius.h"

/* Memory that is used again for each line. scratch->out is the line itself; the rest is for values that lie nowhere in one
 * piece. */
typedef struct sirius_logscratch {
    sr_buffer out, piece, line;
    struct sirius_logformat *owner; /* private */
} sirius_logscratch;

static inline void sirius_logscratch_clear(sirius_logscratch *s)
{
    sr_buffer_free(&s->out);
    sr_buffer_free(&s->piece);
    sr_buffer_free(&s->line);
}

/*
 * What the values of one line are looked up in; all of it borrowed. Give it to a program that was prepared as the ctx of a
 * sr_logsource, with sirius_logview_get.
 */
typedef struct sirius_logview {
#ifdef MULTIPLICITY
    tTHX my_perl;
#endif
    HV *env;                   /* NULL: no values of a request */
    const envpool_env *pooled; /* the same, known to be untouched; or NULL */
    unsigned shape;            /* its number in the pool */
    AV *headers;               /* name, value, ... of the response; or NULL, and then */
    sr_bytes head;             /* its head as it was sent, or no bytes */
    sirius_logscratch *scratch;
    bool plain;  /* run no code of Perl: a value that is tied or a reference counts as none */
    SV *args[4]; /* for handlers: %env, response, length, microseconds. NULL: undef */
} sirius_logview;

/* Makes the keys of the items, once; release before sr_logformat_free. handlers may be NULL: { char => code }. */
void sirius_logformat_prepare(pTHX_ sr_logformat *f, HV *char_handlers, HV *block_handlers);
void sirius_logformat_release(pTHX_ sr_logformat *f);

sr_bytes sirius_logview_get(void *view, const sr_logitem *item);

/* Sirius::LogFormat */
typedef struct sirius_logformat {
    sr_logformat *program;
    sirius_logscratch *scratch; /* NULL while a line is made */
} sirius_logformat;

/* NULL: why and where is in err. The format is taken as bytes, characters above 0xff as UTF-8. */
sirius_logformat *sirius_logformat_new(pTHX_ SV *text, HV *char_handlers, HV *block_handlers,
                                       sr_logformat_error *err);
void sirius_logformat_free(pTHX_ sirius_logformat *f);

/* A new scalar. args: %env, response, length, microseconds, epoch; NULL or undef where they are unknown. */
SV *sirius_logformat_line(pTHX_ SV *self, sirius_logformat *f, SV *const args[5]);

#endif
