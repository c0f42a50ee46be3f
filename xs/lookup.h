#ifndef SIRIUS_LOOKUP_H
#define SIRIUS_LOOKUP_H
/*
 * lookup: what a sub, a statement or an operation of another perl is, by what is in its memory. known.h
 * remembers it.
 */
#include "sirius.h"

#include "base/buffer.h"
#include "naming.h"

typedef enum sirius_leaf {
    SIRIUS_LEAF_NONE,
    SIRIUS_LEAF_PERL,
    SIRIUS_LEAF_SUB,
    SIRIUS_LEAF_METHOD
} sirius_leaf;

typedef struct sirius_finding {
    bool there;  /* false: there is nothing of that kind at this address */
    bool found;  /* it has a name */
    bool fresh;  /* it was looked up since sirius_known_begin */
    bool stale;  /* sirius_known_same has found that it is not what it was */
    bool reused; /* something else was at its address before, maybe when the stack was read */
    bool given;  /* of a sub: its name may be another one soon */
    bool sure;   /* of a closure: its code was known before, at whatever address */
    bool xs;     /* of a sub: it is written in C */
    /* of a sub: it has none but where its code begins, as all subs of that code that have none */
    bool closure;
    bool goes;        /* of a sub: it may leave by goto to another one */
    bool of_text;     /* of a sub like that: its code is a string that was evaluated */
    sirius_leaf leaf; /* of an operation: what it does that has a name of its own */
    PADOFFSET in_pad; /* of LEAF_SUB, LEAF_METHOD: where in the pad its glob or name is; 0: `at` */
    const void *at;
    U32 seq;          /* of a statement: its number in the order of compilation */
    const COP *start; /* of a sub: its first statement, if it begins with one */
    const OP *eval;   /* of a statement of a string or a file: by which those of one text belong together */
    bool main;        /* of a statement: it is one of the main program, and in no sub */
    const OP *root;   /* of a sub, and of a statement in one: by which they belong together; NULL: unknown */
    const char *text; /* of a sub, its name; of a statement, "FILE:LINE"; of LEAF_PERL, "CORE::match" */
    size_t len;
} sirius_finding;

/* What was read of it */
typedef union sirius_raw {
    struct {
        CV head;
        XPVCV body;
        COP first; /* of code in Perl, its first operation: its first statement, mostly */
        GV glob;   /* of a sub that may have been given its name, which is in the body of this */
        XPVGV name;
        sirius_name_head text; /* of the name: the same place may have another one soon */
    } sub;
    COP statement;
    UNOP operation;
    struct {
        PADLIST list;
        const PAD *its;
    } pad;
} sirius_raw;

/*
 * Each fills in *f, all zero before, except for text and len: the text is added to *text. by_code: as if it
 * had no name.
 */
void sirius_lookup_sub(pTHX_ pid_t pid, sr_buffer *text, const sirius_raw *r, bool by_code,
                       sirius_finding *f);
void sirius_lookup_statement(pTHX_ pid_t pid, sr_buffer *text, const sirius_raw *r, sirius_finding *f);
void sirius_lookup_operation(pid_t pid, sr_buffer *text, const sirius_raw *r, sirius_finding *f);
void sirius_lookup_call(pid_t pid, const UNOP *call, sirius_finding *f); /* of an entersub; no text */

#endif
