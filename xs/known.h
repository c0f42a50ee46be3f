#ifndef SIRIUS_KNOWN_H
#define SIRIUS_KNOWN_H
/*
 * known: what is known about the subs, statements and operations of another perl, by their addresses. Looking
 * a name up takes longer than many a sub runs, so it is done once, and remembered with what identifies the
 * sub. A stack that is read later is named by what was known before it was read, and has to be the same after
 * it: sirius_known_same reads all at once. So nothing has the name of what was at its address at another
 * time. Closures are known by their code, at whatever address.
 *
 * Owner: the sampler. Values that are returned live until the next sirius_known_begin.
 */
#include "lookup.h"
#include "target.h"

typedef struct sirius_known sirius_known;

sirius_known *sirius_known_new(pTHX_ const sirius_target *t); /* NULL: no memory */
void sirius_known_free(pTHX_ sirius_known *k);

/* For each stack that is read. again: it is for the same sample as the one before. */
void sirius_known_begin(pTHX_ sirius_known *k, bool again);

sirius_finding sirius_known_sub(pTHX_ sirius_known *k, const CV *at);
sirius_finding sirius_known_sub_again(pTHX_ sirius_known *k,
                                      const CV *at); /* is read again if it was not yet */
sirius_finding sirius_known_statement(pTHX_ sirius_known *k, const COP *at);
sirius_finding sirius_known_operation(pTHX_ sirius_known *k, const OP *at);

/*
 * What an operation that calls has been seen to call. The leaf keeps it; it is forgotten with the operation.
 */
typedef struct sirius_callee {
    const CV *sub; /* written in C; NULL: none was seen */
    U32 method;    /* a hash of the name of the method that it was seen for */
    U32 times;     /* that it was */
    bool varies;   /* others were seen as well */
    bool perl;     /* a sub in Perl was */
} sirius_callee;

/* NULL: nothing is known of it. Lives until the next call for an operation. */
sirius_callee *sirius_known_callee(pTHX_ sirius_known *k, const OP *at);

/*
 * Behind sirius_known_begin: tells all subs by their names, which the caller believes as the process does not
 * run meanwhile.
 */
void sirius_known_settle(sirius_known *k);

/* Whether a sub was told by its code since sirius_known_begin, as its name may be another one by now. */
bool sirius_known_doubts(const sirius_known *k);

/* Whether these are the lexical variables of the sub at that depth of recursion, from 1. */
bool sirius_known_has_pad(pTHX_ sirius_known *k, const CV *at, I32 depth, const PAD *variables);

/*
 * Whatever is at that address by now, it was this code when the stack was read. The name of a closure is that
 * of its code, so it is right even if its address is used for another one meanwhile.
 */
void sirius_known_trust(pTHX_ sirius_known *k, const CV *at);

/*
 * Whether all that was asked for since sirius_known_begin is the same still. What is not, will be looked up
 * again.
 */
bool sirius_known_same(pTHX_ sirius_known *k);

#endif
