#ifndef SIRIUS_CALLSITE_H
#define SIRIUS_CALLSITE_H
/*
 * callsite: whether a statement calls a sub, or evaluates a string, and goes on behind that call. A context
 * of perl has both, the statement and the operation to go on with, but it may have been written while it was
 * read: then the statement is that of one call, and the sub that of another. The tree of operations tells.
 * What was found once is remembered. It does not tell all: the other branch of ?:, a method of another name,
 * goto &sub, the code in a pattern. What was seen there twice in a row is a call as well, and is learned, of
 * that sub alone: a process may stand between the statement and the operation of a new context.
 *
 * Owner: the sampler. Not for perl before 5.26, whose operations do not know what is above them: there every
 * call is believed.
 */
#include "known.h"
#include "snapshot.h"

typedef struct sirius_callsites sirius_callsites;

sirius_callsites *sirius_callsites_new(pTHX_ const sirius_target *t); /* NULL: no memory */
void sirius_callsites_free(pTHX_ sirius_callsites *c);

void sirius_callsites_begin(sirius_callsites *c); /* for each stack that is read */

/*
 * Whether the frame, of a sub, may have been called where it says. Asks `known` for the statement and for the
 * sub.
 */
bool sirius_callsite_has(pTHX_ sirius_callsites *c, sirius_known *known, const sirius_callframe *f);

/* The frame was there, and is the same in the next stack: it was called where it says. */
void sirius_callsite_learn(pTHX_ sirius_callsites *c, sirius_known *known, const sirius_callframe *f);

/* Whether the operation is one of the statement: perl sets the one after the other. */
bool sirius_callsite_is(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement, const OP *op);

/* Whether the statement is `outer`, or one within it, as in the block of a sort. */
bool sirius_callsite_is_within(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement,
                               const COP *outer);

/* Whether the frame, of an eval or a require, may have been called where it says. */
bool sirius_callsite_evals(pTHX_ sirius_callsites *c, sirius_known *known, const sirius_callframe *f);

/* Whether the statement has a sort with a block. */
bool sirius_callsite_sorts(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement);

#endif
