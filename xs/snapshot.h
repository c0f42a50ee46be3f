#ifndef SIRIUS_SNAPSHOT_H
#define SIRIUS_SNAPSHOT_H
/*
 * snapshot: the calls of another perl at a moment. All of it is read by one system call, since a sub may be
 * over within a microsecond: levels and contexts, and the place where perl is before and after the inner
 * ones. Where those lie is known from the time before, also those of levels that have ended and will be used
 * again; only if there are others, they are found anew. A level outside of the one where perl is may be of
 * another moment: it is read three times, and frames say if it had changed.
 *
 * Owner: the sampler.
 */
#include "target.h"

/* Members of the interpreter */
typedef struct sirius_point {
    const OP *op;
    SV **pad; /* values of the lexical variables */
    SV **sp;
    const COP *statement;
    const PAD *variables;
    const PERL_SI *level;
} sirius_point;

typedef enum sirius_call {
    SIRIUS_CALL_SUB,
    SIRIUS_CALL_EVAL, /* of a string */
    SIRIUS_CALL_REQUIRE,
    SIRIUS_CALL_FORMAT,
    SIRIUS_CALL_REGEX,      /* (?{ }) */
    SIRIUS_CALL_REGEX_HERE, /* the same, in a pattern of the sub itself */
    SIRIUS_CALL_SORT,       /* a block */
    SIRIUS_CALL_LEVEL,      /* perl itself calls: for `level` */
} sirius_call;

enum { SIRIUS_LEVEL_KINDS = 16 }; /* PERLSI_UNKNOWN, which is -1, and so on */

typedef struct sirius_callframe { /* a frame of the stack */
    sirius_call call;
    int level;   /* PERLSI_SIGNAL and so on */
    bool late;   /* it began while the stack was read, if it is one at all */
    bool over;   /* it was there, and was over when it was read again */
    bool mixed;  /* its context was that of another call when it was read again: this one may be of two */
    bool unsure; /* of a level: perl may have called for something else */
    bool hidden; /* of a level: it is not shown (seam.h) */
    bool begins; /* its level: what is outside of it is on another one */
    bool torn;   /* that changed while it was read */
    I32 depth;   /* of recursion */
    const CV *sub;
    const COP *called_at;
    const OP *retop;   /* of a sub or an eval: where its caller goes on; NULL: it was called by a sub in C */
    const PAD *caller; /* the variables of the caller; NULL: unknown */
} sirius_callframe;

/* Whether they are of the same call, as far as it shows */
bool sirius_frame_is(const sirius_callframe *a, const sirius_callframe *b);

enum { SIRIUS_FRAMES_MAX = 400 };

typedef struct sirius_calls {
    sirius_callframe frames[SIRIUS_FRAMES_MAX]; /* innermost first; those that do not fit are further out */
    int n;
    bool more;
    bool left_out; /* those that call the outermost one: the sampler does not show them */
    U32 next_seq;  /* statements that were compiled later have no lower number */
    sirius_point before, after;
    bool moved;          /* `after` may be in another call of the innermost sub */
    const COP *calls_at; /* if not: where the innermost frame calls since; NULL: nowhere */
} sirius_calls;

typedef struct sirius_snapshot sirius_snapshot;

sirius_snapshot *sirius_snapshot_new(pTHX_ const sirius_target *t); /* NULL with errno */
void sirius_snapshot_free(sirius_snapshot *s);

/* False with errno: its memory is not readable, or makes no sense, maybe just now. */
bool sirius_snapshot_take(pTHX_ sirius_snapshot *s, sirius_calls *c);

#endif
