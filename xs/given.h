#ifndef SIRIUS_GIVEN_H
#define SIRIUS_GIVEN_H
/*
 * given: the names that closures of a code were given, as by Sub::Util::set_subname. Each may have another
 * one: then the code does not tell which of them was there when the stack was read, only that it was this
 * code. So a name counts once it was seen often, and no other one. Before it is given a name, a closure is
 * __ANON__: that is another matter.
 *
 * Owner: known.
 */
#include "identity.h"

#include "base/bytes.h"

typedef struct sirius_given sirius_given;

typedef struct sirius_given_verdict {
    bool sure;     /* it has the name that all closures of that code have: */
    sr_bytes name; /* lives until the next call of learn or begin */
    bool several;  /* its code has several names */
} sirius_given_verdict;

sirius_given *sirius_given_new(pTHX); /* NULL: no memory */
void sirius_given_free(pTHX_ sirius_given *g);

/* What follows is of that sample. Forgets all, if there are more than so many codes. */
void sirius_given_begin(pTHX_ sirius_given *g, U32 sample, U32 most);

/* How __ANON__ looks */
void sirius_given_anonymous(sirius_given *g, const sirius_identity *is);

/*
 * What is known of the name of a closure that was just read: it may have had another one when the stack was
 * read. changes: others have been at its address; again: the one before was of the same code. Where closures
 * of its code come and go, no name counts if there are several: *is loses it.
 */
sirius_given_verdict sirius_given_judge(pTHX_ sirius_given *g, sirius_identity *is, bool changes, bool again);

/* It had that name all the time while a stack was read. */
void sirius_given_learn(pTHX_ sirius_given *g, const sirius_identity *is, sr_bytes name);

#endif
