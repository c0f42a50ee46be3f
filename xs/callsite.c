#include "callsite.h"

#include "operand.h"
#include "remote.h"
#include "window.h"

#include <stdlib.h>
#include <string.h>

enum {
    SITES_MAX = 20000,      /* then all is forgotten */
    READS_MAX = 40000,      /* operations that are looked at for one of them, of 10 ns each */
    ALL_READS_MAX = 200000, /* and for all of a stack */
    PAGE_READS = 100,       /* for as many a page of their memory counts, which takes 1 us */
    DEPTH_MAX = 200,        /* of a statement */
    LEARNED_MAX = 4,        /* other subs that are called there: after these any may be, where a call is */
    LEVELS_MAX = 40,        /* statements around a statement */
    NAME_MAX_BYTES = 64,
    CODES_MAX = 8,      /* that are counted at a call */
    USUAL_TIMES = 3,    /* that one was seen there, */
    USUAL_SHARE = 32,   /* and one in so many of all that were */
    COUNTED_MAX = 4096, /* then all counts are halved */
};

/* Subs of that code that were seen to be called, at addresses that others had before */
typedef struct code {
    const OP *root;
    U32 times;
} code;

typedef struct site {
    bool found;
    bool loads;          /* of EVALS: a file, no string */
    sirius_finding call; /* leaf: by a glob, by the name of a method, or by whatever was calculated: NONE */
    const CV *sub;       /* of LEAF_SUB: what the glob had last */
    const CV *learned[LEARNED_MAX]; /* the last ones, of so many: */
    U32 learns;
    char name[NAME_MAX_BYTES]; /* of LEAF_METHOD; "": it is longer */
    code codes[CODES_MAX];
    U32 counted; /* of all codes, also those for which there is no room */
} site;

struct sirius_callsites {
    sirius_target target;
    HV *sites; /* by statement and operation: each value has a site as its bytes */
    int left;  /* operations that may still be read for this stack */
};

#if PERL_VERSION >= 26
/* --- the tree of operations --- */

/* What is asked of a statement, with an operation */
typedef enum what_at {
    CALLS,     /* whether it calls a sub, and goes on there */
    EVALS,     /* the same of a string or a file */
    SORTS,     /* by a block; with no operation */
    HAS,       /* whether it has this one */
    IS_WITHIN, /* whether it is this statement, or one within it */
} what_at;

typedef struct walk {
    what_at what;
    const OP *op;
    int left; /* operations that may still be read */
    UNOP found;
    sirius_window memory;
} walk;

static bool read_some(walk *w, void *to, const OP *at, size_t len)
{
    int pages = w->memory.left;
    bool read = at && w->left > 0 && sirius_window_copy(&w->memory, to, at, len);
    w->left -= 1 + (pages - w->memory.left) * PAGE_READS;
    return read;
}

static bool read_op(walk *w, const OP *at, UNOP *op)
{
    return read_some(w, op, at, sizeof *op);
}

static bool is_statement(const UNOP *op)
{
    return op->op_type == OP_NEXTSTATE || op->op_type == OP_DBSTATE;
}

static const OP *sibling(const UNOP *op)
{
    return op->op_moresib ? op->op_sibparent : NULL;
}

static bool loads(const UNOP *op)
{
    return op->op_type == OP_REQUIRE || op->op_type == OP_DOFILE;
}

static bool is_it(const walk *w, const OP *it, const UNOP *op)
{
    switch (w->what) {
    case CALLS:
        return op->op_type == OP_ENTERSUB && op->op_next == w->op;
    case EVALS:
        return (op->op_type == OP_ENTEREVAL || loads(op)) && op->op_next == w->op;
    case SORTS:
        return op->op_type == OP_SORT && op->op_flags & OPf_STACKED && op->op_flags & OPf_SPECIAL;
    default:
        return it == w->op;
    }
}

/* What a substitution puts in, as code (s///e); NULL: none */
static const OP *put_in(walk *w, const OP *at, const UNOP *op)
{
    PMOP subst;
    return op->op_type == OP_SUBST && read_some(w, &subst, at, sizeof subst)
               ? subst.op_pmreplrootu.op_pmreplroot
               : NULL;
}

/* In this operation, or in one of those below it that belong to the same statement */
static bool has(walk *w, const OP *it, const UNOP *op, int depth)
{
    UNOP kid;
    if (is_it(w, it, op)) {
        w->found = *op;
        return true;
    }
    if (depth == DEPTH_MAX)
        return false;
    const OP *code = put_in(w, it, op);
    if (read_op(w, code, &kid) && !is_statement(&kid) && has(w, code, &kid, depth + 1))
        return true;
    if (!(op->op_flags & OPf_KIDS))
        return false;
    for (const OP *at = op->op_first; read_op(w, at, &kid) && !is_statement(&kid); at = sibling(&kid))
        if (has(w, at, &kid, depth + 1))
            return true;
    return false;
}

/* In what follows a statement, until the next one */
static bool has_behind(walk *w, const UNOP *statement)
{
    UNOP op;
    for (const OP *at = sibling(statement); read_op(w, at, &op) && !is_statement(&op); at = sibling(&op))
        if (has(w, at, &op, 0))
            return true;
    return false;
}

/* What is above it; NULL: nothing, or unknown */
static const OP *parent(walk *w, UNOP op)
{
    while (op.op_moresib)
        if (!read_op(w, op.op_sibparent, &op))
            return NULL;
    return op.op_sibparent;
}

/* The last statement before it among those that have the same parent; NULL: there is none */
static const OP *statement_before(walk *w, const UNOP *above, const OP *it, UNOP *statement)
{
    UNOP op;
    const OP *last = NULL;
    for (const OP *at = above->op_first; at != it && read_op(w, at, &op); at = sibling(&op)) {
        if (is_statement(&op)) {
            *statement = op;
            last = at;
        }
    }
    return last;
}

/*
 * In the statement, or in one around it: perl does not always note when it leaves a block, as before it looks
 * at the condition of a loop again.
 */
static bool find(walk *w, const OP *statement)
{
    UNOP op, above, around;
    const OP *outer = w->what == IS_WITHIN ? w->op : NULL;
    if (!read_op(w, statement, &op) || !is_statement(&op))
        return false;
    if (outer ? statement == outer : has_behind(w, &op))
        return true;
    const OP *at = parent(w, op);
    if (!read_op(w, at, &op))
        return false;
    for (int i = 0; i < LEVELS_MAX; i++) {
        const OP *up = parent(w, op), *before;
        if (!read_op(w, up, &above) || !(above.op_flags & OPf_KIDS))
            return false;
        before = statement_before(w, &above, at, &around);
        if (before && (outer ? before == outer : has_behind(w, &around)))
            return true;
        at = up;
        op = above;
    }
    return false;
}

/* --- what is called there --- */

/* Of the lexical variables of a sub; NULL: unknown */
static SV *const *values_of(pid_t pid, const PAD *variables)
{
    PAD pad;
    return variables && sirius_remote_copy(pid, &pad, variables, sizeof pad) ? pad.sv_u.svu_array : NULL;
}

static void note_name(pid_t pid, site *s, const PAD *variables)
{
    size_t len = sirius_operand_method(pid, &s->call, values_of(pid, variables), s->name, sizeof s->name);
    for (size_t i = 0; i < len; i++)
        if (s->name[i] < '!' || s->name[i] > '~') /* in the name of a sub it would be escaped */
            len = 0;
    s->name[len] = 0;
}

/* caller: its variables, if it calls a sub. What would take too long to find is not found. */
static site look(walk *w, const COP *statement, const PAD *caller)
{
    site s;
    memset(&s, 0, sizeof s);
    s.found = find(w, (const OP *)statement);
    s.loads = s.found && w->what == EVALS && loads(&w->found);
    if (s.found && w->what == CALLS) {
        pid_t pid = w->memory.pid;
        sirius_lookup_call(pid, &w->found, &s.call);
        if (!s.call.found)
            s.call.leaf = SIRIUS_LEAF_NONE;
        if (s.call.leaf == SIRIUS_LEAF_METHOD)
            note_name(pid, &s, caller);
    }
    return s;
}

/* A closure that was installed as a method has no name of its own. */
static bool has_name(const sirius_finding *sub, const char *name)
{
    return !name[0] || sub->closure || sirius_operand_names(sub, sr_bytes_of(name, strlen(name)));
}

/* NULL: there is no time for it in this stack; *unknown: nothing ever tells, as there is no statement */
static site *get(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement, what_at what,
                 const OP *op, const PAD *caller, bool *unknown)
{
    struct {
        const void *statement, *op;
        U32 seq, what;
    } key = {statement, op, 0, what};
    sirius_finding its = sirius_known_statement(aTHX_ known, statement);
    *unknown = !its.there;
    if (!its.there)
        return NULL;
    key.seq = its.seq;
    SV **found = hv_fetch(c->sites, (char *)&key, sizeof key, 0);
    if (!found && c->left < READS_MAX)
        return NULL;
    if (!found) {
        walk w;
        w.what = what;
        w.op = op;
        w.left = READS_MAX;
        sirius_window_open(&w.memory, c->target.pid, READS_MAX / PAGE_READS);
        site s = look(&w, statement, caller);
        c->left -= READS_MAX - w.left;
        if (HvUSEDKEYS(c->sites) >= SITES_MAX)
            hv_clear(c->sites);
        found = hv_store(c->sites, (char *)&key, sizeof key, newSVpvn((char *)&s, sizeof s), 0);
    }
    return found ? (site *)SvPVX(*found) : NULL;
}

static bool is_learned(const site *s, const CV *sub)
{
    for (int i = 0; i < LEARNED_MAX; i++)
        if (s->learned[i] == sub)
            return true;
    return false;
}

/* NULL: there is no room, or the code is unknown */
static code *count_code(site *s, const OP *root)
{
    code *c = NULL;
    for (int i = 0; root && i < CODES_MAX && !(c && c->times); i++)
        if ((s->codes[i].times && s->codes[i].root == root) || (!s->codes[i].times && !c))
            c = &s->codes[i];
    if (c) {
        c->root = root;
        c->times++;
    }
    if (++s->counted == COUNTED_MAX) {
        s->counted /= 2;
        for (int i = 0; i < CODES_MAX; i++)
            s->codes[i].times /= 2;
    }
    return c;
}

/*
 * What is called does not tell all: a closure that is made for each call has the address of the last one, of
 * whatever code. When the context is of one call and the sub of another, which happens to 1 in 250 of those
 * that run for less than 1 us, the code is one that is hardly ever called there. Others than closures are
 * counted as well, but their names are known by their address.
 */
static bool is_usual(site *s, const sirius_finding *sub)
{
    if (!sub->reused)
        return true;
    const code *c = count_code(s, sub->root);
    return !c || !sub->closure || (c->times >= USUAL_TIMES && c->times * USUAL_SHARE >= s->counted);
}

bool sirius_callsite_has(pTHX_ sirius_callsites *c, sirius_known *known, const sirius_callframe *f)
{
    bool unknown;
    if (!f->retop) /* it was called by a sub in C */
        return true;
    site *s = get(aTHX_ c, known, f->called_at, CALLS, f->retop, f->caller, &unknown);
    if (!s || !s->found)
        return s ? is_learned(s, f->sub) : unknown;
    sirius_finding sub = sirius_known_sub(aTHX_ known, f->sub);
    bool usual = is_usual(s, &sub);
    if (is_learned(s, f->sub))
        return true;
    if (s->call.leaf == SIRIUS_LEAF_METHOD && sub.found && !has_name(&sub, s->name))
        return false;
    if (s->call.leaf == SIRIUS_LEAF_SUB && s->sub != f->sub) { /* another one may be there now */
        s->sub = sirius_operand_sub(c->target.pid, &s->call, values_of(c->target.pid, f->caller));
        if (s->sub != f->sub)
            return false;
    }
    return usual;
}

void sirius_callsite_learn(pTHX_ sirius_callsites *c, sirius_known *known, const sirius_callframe *f)
{
    bool unknown;
    site *s = f->retop ? get(aTHX_ c, known, f->called_at, CALLS, f->retop, f->caller, &unknown) : NULL;
    sirius_finding sub = sirius_known_sub(aTHX_ known, f->sub);
    if (!s || (sub.closure && sub.reused) || is_learned(s, f->sub)) /* at its address will be another one */
        return;
    if (s->learns == LEARNED_MAX && s->found) {
        s->call.leaf = SIRIUS_LEAF_NONE;
        return;
    }
    s->learned[s->learns++ % LEARNED_MAX] = f->sub;
}

/* A question that needs no more than a yes; `otherwise`: the answer where there is no statement */
static bool answer(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement, what_at what,
                   const OP *op, bool otherwise)
{
    bool unknown;
    const site *s = get(aTHX_ c, known, statement, what, op, NULL, &unknown);
    return s ? s->found : unknown && otherwise;
}

bool sirius_callsite_is(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement, const OP *op)
{
    return op && answer(aTHX_ c, known, statement, HAS, op, false);
}

bool sirius_callsite_is_within(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement,
                               const COP *outer)
{
    return outer && answer(aTHX_ c, known, statement, IS_WITHIN, (const OP *)outer, false);
}

bool sirius_callsite_evals(pTHX_ sirius_callsites *c, sirius_known *known, const sirius_callframe *f)
{
    bool unknown;
    if (!f->retop) /* by C */
        return true;
    const site *s = get(aTHX_ c, known, f->called_at, EVALS, f->retop, NULL, &unknown);
    return s ? s->found && s->loads == (f->call == SIRIUS_CALL_REQUIRE) : unknown;
}

bool sirius_callsite_sorts(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement)
{
    return answer(aTHX_ c, known, statement, SORTS, NULL, true);
}
#else
bool sirius_callsite_has(pTHX_ sirius_callsites *c, sirius_known *known, const sirius_callframe *f)
{
    PERL_UNUSED_CONTEXT;
    (void)c, (void)known, (void)f;
    return true;
}

void sirius_callsite_learn(pTHX_ sirius_callsites *c, sirius_known *known, const sirius_callframe *f)
{
    PERL_UNUSED_CONTEXT;
    (void)c, (void)known, (void)f;
}

bool sirius_callsite_is(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement, const OP *op)
{
    PERL_UNUSED_CONTEXT;
    (void)c, (void)known, (void)statement, (void)op;
    return true;
}

bool sirius_callsite_is_within(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement,
                               const COP *outer)
{
    PERL_UNUSED_CONTEXT;
    (void)c, (void)known, (void)statement, (void)outer;
    return true;
}

bool sirius_callsite_evals(pTHX_ sirius_callsites *c, sirius_known *known, const sirius_callframe *f)
{
    PERL_UNUSED_CONTEXT;
    (void)c, (void)known, (void)f;
    return true;
}

bool sirius_callsite_sorts(pTHX_ sirius_callsites *c, sirius_known *known, const COP *statement)
{
    PERL_UNUSED_CONTEXT;
    (void)c, (void)known, (void)statement;
    return true;
}
#endif

void sirius_callsites_begin(sirius_callsites *c)
{
    c->left = ALL_READS_MAX;
}

sirius_callsites *sirius_callsites_new(pTHX_ const sirius_target *t)
{
    sirius_callsites *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->target = *t;
    c->sites = newHV();
    return c;
}

void sirius_callsites_free(pTHX_ sirius_callsites *c)
{
    if (!c)
        return;
    SvREFCNT_dec((SV *)c->sites);
    free(c);
}
