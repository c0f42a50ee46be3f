#ifndef SIRIUS_IDENTITY_H
#define SIRIUS_IDENTITY_H
/*
 * identity: what says that the sub, statement, operation or pad at an address of another perl is the same as
 * before: members that do not change while it lives. Addresses alone do not: all of them may be those of
 * something that was there before.
 */
#include "lookup.h"
#include "remote.h"

typedef enum sirius_kind {
    SIRIUS_KIND_SUB,
    SIRIUS_KIND_STATEMENT,
    SIRIUS_KIND_OPERATION,
    SIRIUS_KIND_PAD, /* the one of a depth of recursion, in a list of pads */
} sirius_kind;

/* Indexes of sirius_members.part, for a sub */
enum {
    SIRIUS_SUB_BODY,
    SIRIUS_SUB_STASH,
    SIRIUS_SUB_GLOB,
    SIRIUS_SUB_START,
    SIRIUS_SUB_ROOT,
    SIRIUS_SUB_PADS,
    SIRIUS_SUB_NAME, /* of a closure: that of its glob, and what is in the same place */
    SIRIUS_SUB_PACKAGE,
    SIRIUS_SUB_GLOB_BODY,
    SIRIUS_PARTS
};

/* Indexes of sirius_members.number */
enum { SIRIUS_SUB_FLAGS, SIRIUS_SUB_TYPE, SIRIUS_SUB_SEQ, SIRIUS_SUB_HASH, SIRIUS_NUMBERS };
enum { SIRIUS_STATEMENT_SEQ, SIRIUS_STATEMENT_LINE, SIRIUS_STATEMENT_TYPE };

typedef struct sirius_members { /* its bytes are compared, and are a key: all of them are set */
    const void *part[SIRIUS_PARTS];
    U32 number[SIRIUS_NUMBERS];
} sirius_members;

enum { SIRIUS_IDENTITY_MORE = 5, SIRIUS_IDENTITY_PIECES = 1 + SIRIUS_IDENTITY_MORE };

typedef struct sirius_identity {
    sirius_kind kind;
    bool by_code; /* of a sub: the name that it was given does not count */
    const void *at;
    const void *more[SIRIUS_IDENTITY_MORE]; /* where what is at `at` leads */
    sirius_members members;
} sirius_identity;

/*
 * Reads what is there, with the members that *is takes from it. depth: of a pad. False: it is not readable,
 * or not of that kind.
 */
bool sirius_identity_read(pid_t pid, sirius_kind kind, const void *at, I32 depth, sirius_raw *r,
                          sirius_identity *is);

/*
 * What has to be read into *r to see whether it is still the same: at most SIRIUS_IDENTITY_PIECES. Returns
 * how many.
 */
size_t sirius_identity_pieces(const sirius_identity *is, sirius_raw *r, sirius_piece *to);
bool sirius_identity_still(const sirius_identity *is, const sirius_raw *r);

bool sirius_identity_same(const sirius_identity *a, const sirius_identity *b);

/* Whether it is a sub whose name may be another one soon, be it a closure or not. */
bool sirius_identity_is_given(const sirius_identity *is);

/* Whether it is a closure whose name, be it __ANON__, counts; from now on only its code does. */
bool sirius_identity_has_name(const sirius_identity *is);
void sirius_identity_drop_name(sirius_identity *is);

#endif
