#ifndef SIRIUS_KNOWN_H
#define SIRIUS_KNOWN_H
/*
 * known: what is known about the subs, statements and operations of another perl, by their addresses. Looking a name up takes
 * longer than many a sub runs, so it is done once, and remembered with what identifies the sub. A stack that is read later is
 * named by what was known before it was read, and has to be the same after it: sirius_known_same reads all at once. So nothing has
 * the name of what was at its address at another time.
 *
 * Owner: the sampler. Values that are returned live until the next sirius_known_begin.
 */
#include "lookup.h"
#include "target.h"

typedef struct sirius_known sirius_known;

sirius_known *sirius_known_new(pTHX_ const sirius_target *t); /* NULL: no memory */
void sirius_known_free(pTHX_ sirius_known *k);

void sirius_known_begin(pTHX_ sirius_known *k); /* for each stack that is read */
sirius_finding sirius_known_sub(pTHX_ sirius_known *k, const CV *at);
sirius_finding sirius_known_statement(pTHX_ sirius_known *k, const COP *at);
sirius_finding sirius_known_operation(pTHX_ sirius_known *k, const OP *at);

/* The lexical variables of a sub at a depth of recursion, from 1; NULL: unknown. */
const PAD *sirius_known_pad(pTHX_ sirius_known *k, const CV *at, I32 depth);

/* Whether all that was asked for since sirius_known_begin is the same still. What is not, will be looked up again. */
bool sirius_known_same(pTHX_ sirius_known *k);

#endif
