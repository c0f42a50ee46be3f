#ifndef SIRIUS_LOGFORMAT_H
#define SIRIUS_LOGFORMAT_H
/*
 * logformat: lines of an access log from a PSGI %env and a response. src/log/format.h makes the lines;
 * here is where their values come from.
 *
 * Thread: that of perl. A value that is tied or overloaded, and a handler, run code of Perl, which may die:
 * where that must not happen, as a reply is half made, set `plain`.
 */
#include "log/format.h"
#include "perlapi.h"

/*
 * Memory that is used again for each line: the line itself in `out`, and values that are not contiguous
 * elsewhere.
 */
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
 * Where the values of one line are looked up. Everything belongs to the caller. Use it as the ctx of a
 * sr_logsource, with sirius_logview_get, for a program that was prepared.
 */
typedef struct sirius_logview {
#ifdef MULTIPLICITY
    tTHX my_perl;
#endif
    HV *env; /* NULL: there is no request */
    const struct envpool_env
        *pooled;    /* the entry of the pool for env, if it is known to be untouched; or NULL */
    unsigned shape; /* index of that entry */
    AV *headers;    /* fields of the response: name, value, ...; NULL: see head */
    sr_bytes head;  /* head of the response as it was sent, or no bytes */
    sirius_logscratch *scratch;
    bool plain;  /* run no code of Perl: a value that is tied or a reference is missing */
    SV *args[4]; /* arguments of handlers: %env, response, length, microseconds; NULL: undef */
} sirius_logview;

/*
 * Makes the keys of the items, once for a program. Handlers are { char => code }, or NULL. Release before
 * sr_logformat_free.
 */
void sirius_logformat_prepare(pTHX_ sr_logformat *f, HV *char_handlers, HV *block_handlers);
void sirius_logformat_release(pTHX_ sr_logformat *f);

sr_bytes sirius_logview_get(void *view, const sr_logitem *item);

/* The referent of an object of Sirius::LogFormat. */
typedef struct sirius_logformat {
    sr_logformat *program;
    sirius_logscratch *scratch; /* NULL while a line is being made */
} sirius_logformat;

/*
 * The format is taken as bytes, or as UTF-8 if it has characters above 0xff. NULL: err says why, and where.
 */
sirius_logformat *sirius_logformat_new(pTHX_ SV *text, HV *char_handlers, HV *block_handlers,
                                       sr_logformat_error *err);
void sirius_logformat_free(pTHX_ sirius_logformat *f);

/* Returns a new scalar. args: %env, response, length, microseconds, epoch; NULL or undef if unknown. */
SV *sirius_logformat_line(pTHX_ SV *self, sirius_logformat *f, SV *const args[5]);

#endif
