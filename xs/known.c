#include "known.h"

#include "remote.h"

#include <stdlib.h>
#include <string.h>

enum {
    ENTRIES_MAX = 50000, /* then all is forgotten */
    PENDING_MAX = 1500,
    MORE_MAX = 5,
};

enum { BODY, FIRST, GLOB, NAME, TEXT }; /* of entry.more */

typedef enum kind { SUB, STATEMENT, OPERATION, PAD_OF_DEPTH } kind;

/* What says that it is the same as before: members that do not change while it lives */
typedef struct identity {
    const void *part[9];
    U32 number[4];
} identity;

typedef struct entry {
    kind kind;
    U32 round; /* in which it was asked for last */
    U32 read;  /* in which it was read last */
    bool stale;
    bool
        changes; /* its address is used again and again, as those of closures: it is read before each use as well */
    bool sure;    /* of a sub: its name was known before, by its code */
    bool by_code; /* of a sub: the name that it was given does not count */
    U32 trusted;  /* the last round in which the stack has shown that it was this one */
    identity is;
    const void *at;
    const void *more[MORE_MAX]; /* what is at `at` leads there: see leads_to */
    sirius_callee callee;
    sirius_finding finding; /* text: see text_of */
    char text[];
} entry;

struct sirius_known {
    sirius_target target;
    HV *entries; /* by address, depth and kind: each value has an entry as its bytes */
    HV *names;   /* that closures were given, by their code: each value has a given_name as its bytes */
    U32 round;
    bool mixed; /* what was told of a sub since the last begin is of one code and of another */
    sr_buffer text;
    SV *pending[PENDING_MAX]; /* what was asked for since the last begin */
    size_t n;
    sirius_raw *raws; /* as many */
    sirius_piece *pieces;
};

static entry *entry_of(SV *sv)
{
    return (entry *)SvPVX(sv);
}

/* --- identities --- */

#if PERL_VERSION >= 22
#define NEXT_SIBLING(op) OpSIBLING(op)
static const void *pads_of(const PADLIST *list)
{
    return list->xpadl_arr.xpadlarr_alloc;
}

static bool has_depth(const PADLIST *list, I32 depth)
{
    return depth >= 1 && depth <= list->xpadl_max;
}
#else /* there are no pads here: see sirius_known_has_pad */
#define NEXT_SIBLING(op) (op)->op_sibling
static const void *pads_of(const PADLIST *list)
{
    (void)list;
    return NULL;
}

static bool has_depth(const PADLIST *list, I32 depth)
{
    (void)list;
    (void)depth;
    return false;
}
#endif

static identity identity_of(kind kind, const sirius_raw *r)
{
    identity is;
    memset(&is, 0, sizeof is);
    if (kind == SUB) {
        const XPVCV *body = &r->sub.body;
        is.part[0] = r->sub.head.sv_any;
        is.part[1] = body->xcv_stash;
#ifdef CVf_NAMED
        is.part[2] = body->xcv_gv_u.xcv_gv;
        is.number[0] = body->xcv_flags & (CVf_NAMED | CVf_ISXSUB);
#else
        is.part[2] = body->xcv_gv;
        is.number[0] = body->xcv_flags & CVf_ISXSUB;
#endif
        is.part[3] = body->xcv_start_u.xcv_start;
        is.part[4] = body->xcv_root_u.xcv_root;
#if PERL_VERSION >= 22
        is.part[5] = body->xcv_padlist_u.xcv_padlist;
#else
        is.part[5] = body->xcv_padlist;
#endif
        is.part[6] = r->sub.name.xiv_u.xivu_namehek;
        is.part[7] = r->sub.name.xnv_u.xgv_stash;
        is.part[8] = r->sub.glob.sv_any;
        is.number[1] = SvTYPE(&r->sub.head);
        is.number[3] = r->sub.text.hash;
        is.number[2] = r->sub.first.cop_seq; /* all addresses may be those of a sub that was there before */
    } else if (kind == STATEMENT) {
        const COP *cop = &r->statement;
        is.part[0] = cop->op_next;
#ifdef USE_ITHREADS
        is.part[1] = CopFILE(cop);
#else
        is.part[1] = CopFILEGV(cop);
#endif
        is.number[0] = cop->cop_seq;
        is.number[1] = CopLINE(cop);
    } else if (kind == PAD_OF_DEPTH) {
        is.part[0] = pads_of(&r->pad.list);
        is.part[1] = r->pad.its;
    } else {
        const UNOP *op = &r->operation;
        is.part[0] = op->op_next;
        is.part[1] = (const void *)(uintptr_t)op->op_ppaddr;
        is.part[2] = NEXT_SIBLING(op);
        is.part[3] = op->op_first;
        is.number[0] = op->op_type;
        is.number[1] = (U32)op->op_targ;
    }
    return is;
}

/* What has to be read of it, as far as `more` is known. Returns how many pieces. */
static size_t pieces_of(kind kind, const void *at, const void *const more[], sirius_raw *r, sirius_piece *to)
{
    size_t n = 1;
    if (kind == SUB) {
        to[0] = (sirius_piece){&r->sub.head, at, sizeof r->sub.head};
        if (more[BODY])
            to[n++] = (sirius_piece){&r->sub.body, more[BODY], sizeof r->sub.body};
        if (more[FIRST])
            to[n++] = (sirius_piece){&r->sub.first, more[FIRST], sizeof r->sub.first};
        if (more[GLOB])
            to[n++] = (sirius_piece){&r->sub.glob, more[GLOB], sizeof r->sub.glob};
        if (more[NAME])
            to[n++] = (sirius_piece){&r->sub.name, more[NAME], sizeof r->sub.name};
        if (more[TEXT])
            to[n++] = (sirius_piece){&r->sub.text, more[TEXT], sizeof r->sub.text};
    } else if (kind == PAD_OF_DEPTH) {
        to[0] = (sirius_piece){&r->pad.list, at, sizeof r->pad.list};
        if (more[BODY])
            to[n++] = (sirius_piece){&r->pad.its, more[BODY], sizeof r->pad.its};
    } else if (kind == STATEMENT) {
        to[0] = (sirius_piece){&r->statement, at, sizeof r->statement};
    } else {
        to[0] = (sirius_piece){&r->operation, at, sizeof r->operation};
    }
    return n;
}

/* --- looking up --- */

/* The glob that a closure has its name from; NULL: it has none of its own */
static const void *glob_of(const XPVCV *body)
{
    if (!(body->xcv_flags & CVf_CLONED))
        return NULL;
#ifdef CVf_NAMED
    return body->xcv_flags & CVf_NAMED ? NULL : body->xcv_gv_u.xcv_gv;
#else
    return body->xcv_gv;
#endif
}

/*
 * What has to be read beside what was read at its address, as far as that says so: of a sub, its body, and what that leads to; of a
 * pad, its place in the list. False: it is not what it should be.
 */
static bool leads_to(kind kind, const sirius_raw *r, I32 depth, const void *more[])
{
    if (kind == SUB) {
        more[BODY] = r->sub.head.sv_any;
        return SvTYPE(&r->sub.head) == SVt_PVCV && more[BODY];
    }
    if (kind == PAD_OF_DEPTH) {
        uintptr_t pads = (uintptr_t)pads_of(&r->pad.list);
        more[BODY] = (const void *)(pads + (size_t)depth * sizeof r->pad.its);
        return pads && has_depth(&r->pad.list, depth);
    }
    return true;
}

static const void *first_of(const XPVCV *body)
{
    return body->xcv_flags & CVf_ISXSUB ? NULL : body->xcv_start_u.xcv_start;
}

static identity without_name(identity is)
{
    is.part[2] = is.part[6] = is.part[7] = is.part[8] = NULL;
    is.number[3] = 0;
    return is;
}

static bool read_one(const sirius_known *k, kind kind, const void *at, I32 depth, sirius_raw *r, entry *e)
{
    pid_t pid = k->target.pid;
    sirius_piece pieces[1 + MORE_MAX];
    memset(e, 0, sizeof *e);
    memset(r, 0, sizeof *r);
    e->kind = kind;
    e->at = at;
    e->finding.there = e->finding.fresh = true;
    if (!sirius_remote_pieces(pid, pieces, pieces_of(kind, at, e->more, r, pieces)) ||
        !leads_to(kind, r, depth, e->more))
        return false;
    const void *more[MORE_MAX] = {NULL};
    if (e->more[BODY] && (!sirius_remote_pieces(pid, pieces, pieces_of(kind, at, e->more, r, pieces)) ||
                          !leads_to(kind, r, depth, more) || more[BODY] != e->more[BODY]))
        return false;
    if (kind == SUB) { /* a closure may be gone by now: its code and its glob are not */
        e->more[FIRST] = first_of(&r->sub.body);
        e->more[GLOB] = glob_of(&r->sub.body);
        if ((e->more[FIRST] &&
             !sirius_remote_copy(pid, &r->sub.first, e->more[FIRST], sizeof r->sub.first)) ||
            (e->more[GLOB] && !sirius_remote_copy(pid, &r->sub.glob, e->more[GLOB], sizeof r->sub.glob)))
            return false;
        e->more[NAME] = SvTYPE(&r->sub.glob) == SVt_PVGV ? r->sub.glob.sv_any : NULL;
        if (e->more[NAME] && !sirius_remote_copy(pid, &r->sub.name, e->more[NAME], sizeof r->sub.name))
            return false;
        e->more[TEXT] = r->sub.name.xiv_u.xivu_namehek;
        if (e->more[TEXT] && !sirius_remote_copy(pid, &r->sub.text, e->more[TEXT], sizeof r->sub.text))
            return false;
    }
    e->is = identity_of(kind, r);
    return true;
}

/* What it is called, with the text in k->text. */
static void look_up(pTHX_ sirius_known *k, const sirius_raw *r, entry *e)
{
    sr_buffer_reset(&k->text);
    if (e->kind == SUB) {
        sirius_lookup_sub(aTHX_ k->target.pid, &k->text, r, e->by_code, &e->finding);
    } else if (e->kind == STATEMENT) {
        sirius_lookup_statement(aTHX_ k->target.pid, &k->text, r, &e->finding);
    } else if (e->kind == OPERATION) {
        sirius_lookup_operation(k->target.pid, &k->text, r, &e->finding);
    } else {
        e->finding.at = r->pad.its;
        e->finding.found = r->pad.its != NULL;
    }
    e->finding.len = e->finding.found ? sr_buffer_len(&k->text) : 0;
}

static bool is_same(const entry *a, const entry *b)
{
    return memcmp(&a->is, &b->is, sizeof a->is) == 0;
}

/*
 * All closures of the same code have its name: its entry, which is that of one of them; NULL: unknown. What is at the address of code
 * may be other code by now, but not with the same number.
 */
static SV **code_of(pTHX_ const sirius_known *k, identity is, bool make)
{
    is.part[0] = is.part[5] = NULL;
    SV **found = hv_fetch(k->entries, (char *)&is, sizeof is, 0);
    return found || !make ? found : hv_store(k->entries, (char *)&is, sizeof is, newSVpvs(""), 0);
}

typedef struct given_name {
    const void *package;
    U32 hash;
    bool several;
} given_name;

/* NULL: none is known */
static given_name *given_name_of(pTHX_ sirius_known *k, const entry *e, const given_name *first)
{
    struct {
        const void *root, *seq;
    } key = {e->is.part[4], (const void *)(uintptr_t)e->is.number[2]};
    SV **found = hv_fetch(k->names, (char *)&key, sizeof key, 0);
    if (!found && first)
        found = hv_store(k->names, (char *)&key, sizeof key, newSVpvn((const char *)first, sizeof *first), 0);
    return found ? (given_name *)SvPVX(*found) : NULL;
}

/*
 * Closures of that code were given several names, as by Sub::Util::set_subname: the code does not tell which one was there when the
 * stack was read, only that it was this code.
 */
static bool has_several_names(pTHX_ sirius_known *k, const entry *e)
{
    const given_name *name = e->more[TEXT] ? given_name_of(aTHX_ k, e, NULL) : NULL;
    return name && name->several;
}

static void put(pTHX_ SV *to, const entry *e, const char *text)
{
    size_t len = e->finding.len;
    memcpy(SvGROW(to, sizeof *e + len + 1), e, sizeof *e);
    memcpy(entry_of(to)->text, len ? text : "", len);
}

/*
 * What was asked for in this round stays what it was, even if it has changed since: a closure may be gone when its name is wanted,
 * and something else may be at its address.
 */
static bool needs_reading(const sirius_known *k, const entry *e, bool again)
{
    if (e->read == k->round)
        return false;
    return again || (e->round != k->round && (e->stale || e->changes));
}

/* Another closure of the same code is as good */
static bool same_code(const entry *a, const entry *b)
{
    return a->kind != SUB || (a->finding.root && a->finding.root == b->finding.root);
}

/* The entry, asked for in this round, and read in it if `again`; NULL: there is nothing */
static entry *get(pTHX_ sirius_known *k, kind kind, const void *at, I32 depth, bool again)
{
    struct {
        const void *at;
        I32 depth, kind;
    } key = {at, depth, (I32)kind}; /* an operation may be a statement as well */
    if (!at)
        return NULL;
    SV **found = hv_fetch(k->entries, (char *)&key, sizeof key, 0);
    const entry *old = found ? entry_of(*found) : NULL;
    if (!old || needs_reading(k, old, again)) {
        entry e;
        sirius_raw r;
        if (!read_one(k, kind, at, depth, &r, &e))
            return NULL;
        e.changes = old && (old->changes || old->stale || !is_same(&e, old));
        if (kind == SUB && e.changes && has_several_names(aTHX_ k, &e)) {
            e.by_code = true;
            e.is = without_name(e.is);
        }
        if (!old || old->stale || !is_same(&e, old)) {
            SV **code = kind == SUB ? code_of(aTHX_ k, e.is, false) : NULL;
            if (code) {
                e.finding = entry_of(*code)->finding;
                e.finding.fresh = e.sure = true;
            } else {
                look_up(aTHX_ k, &r, &e);
            }
            k->mixed = k->mixed || (old && old->round == k->round && !same_code(&e, old));
            if (!found)
                found = hv_store(k->entries, (char *)&key, sizeof key, newSVpvs(""), 0);
            if (!found)
                return NULL;
            put(aTHX_ * found, &e, code ? entry_of(*code)->text : sr_buffer_at(&k->text));
        }
        entry_of(*found)->read = k->round;
    }
    entry *e = entry_of(*found);
    if (e->round != k->round) {
        if (k->n == PENDING_MAX)
            return NULL;
        e->round = k->round;
        k->pending[k->n++] = *found;
    }
    return e;
}

static entry *ask(pTHX_ sirius_known *k, kind kind, const void *at, I32 depth)
{
    return get(aTHX_ k, kind, at, depth, false);
}

static sirius_finding finding_of(const entry *e)
{
    sirius_finding f;
    memset(&f, 0, sizeof f);
    if (!e)
        return f;
    f = e->finding;
    f.text = e->text;
    f.reused = e->changes;
    f.sure = e->sure;
    f.seq = e->kind == STATEMENT ? e->is.number[0] : 0;
    return f;
}

sirius_finding sirius_known_sub(pTHX_ sirius_known *k, const CV *at)
{
    return finding_of(ask(aTHX_ k, SUB, at, 0));
}

sirius_finding sirius_known_sub_again(pTHX_ sirius_known *k, const CV *at)
{
    return finding_of(get(aTHX_ k, SUB, at, 0, true));
}

sirius_finding sirius_known_statement(pTHX_ sirius_known *k, const COP *at)
{
    return finding_of(ask(aTHX_ k, STATEMENT, at, 0));
}

sirius_finding sirius_known_operation(pTHX_ sirius_known *k, const OP *at)
{
    return finding_of(ask(aTHX_ k, OPERATION, at, 0));
}

sirius_callee *sirius_known_callee(pTHX_ sirius_known *k, const OP *at)
{
    entry *e = ask(aTHX_ k, OPERATION, at, 0);
    return e ? &e->callee : NULL;
}

bool sirius_known_has_pad(pTHX_ sirius_known *k, const CV *at, I32 depth, const PAD *variables)
{
#if PERL_VERSION >= 22
    bool has = false;
    for (int again = 0; again < 2 && !has && variables; again++) { /* others may be there now */
        const entry *sub = get(aTHX_ k, SUB, at, 0, again), *e = NULL;
        if (sub && !sub->finding.xs)
            e = get(aTHX_ k, PAD_OF_DEPTH, sub->is.part[5], depth, again);
        has = e && e->finding.at == variables;
    }
    return has;
#else
    PERL_UNUSED_CONTEXT;
    (void)k, (void)at, (void)depth, (void)variables;
    return false;
#endif
}

/* Its name was there all the time since it was looked up. */
static void learn(pTHX_ sirius_known *k, entry *e)
{
    SV **code = code_of(aTHX_ k, e->is, true);
    e->sure = code != NULL;
    if (code)
        put(aTHX_ * code, e, e->text);
}

/* The same for the name that it was given. */
static void learn_name(pTHX_ sirius_known *k, const entry *e)
{
    given_name its = {e->is.part[7], e->is.number[3], false};
    given_name *known = given_name_of(aTHX_ k, e, &its);
    if (known && (known->hash != its.hash || known->package != its.package))
        known->several = true;
}

bool sirius_known_same(pTHX_ sirius_known *k)
{
    size_t n = 0;
    bool same = !k->mixed;
    for (size_t i = 0; i < k->n; i++) {
        const entry *e = entry_of(k->pending[i]);
        memset(&k->raws[i], 0, sizeof k->raws[i]); /* not all of it is read */
        n += pieces_of(e->kind, e->at, e->more, &k->raws[i], k->pieces + n);
    }
    PERL_UNUSED_CONTEXT;
    bool read = sirius_remote_pieces(k->target.pid, k->pieces, n);
    for (size_t i = 0; i < k->n; i++) {
        entry *e = entry_of(k->pending[i]);
        identity is = identity_of(e->kind, &k->raws[i]);
        if (e->by_code)
            is = without_name(is);
        e->stale = !read || memcmp(&is, &e->is, sizeof is) != 0;
        if (e->stale)
            same = same && read && (e->kind == PAD_OF_DEPTH || (e->sure && e->trusted == k->round));
        else if (e->kind == SUB && e->finding.closure && !e->sure)
            learn(aTHX_ k, e);
        else if (e->changes && e->more[TEXT] && !e->finding.closure)
            learn_name(aTHX_ k, e);
    }
    return same;
}

void sirius_known_trust(pTHX_ sirius_known *k, const CV *at)
{
    entry *e = ask(aTHX_ k, SUB, at, 0);
    if (e)
        e->trusted = k->round;
}

void sirius_known_begin(pTHX_ sirius_known *k)
{
    for (size_t i = 0; i < k->n; i++)
        entry_of(k->pending[i])->finding.fresh = false;
    k->n = 0;
    k->mixed = false;
    k->round++;
    if (HvUSEDKEYS(k->entries) > ENTRIES_MAX)
        hv_clear(k->entries);
    if (HvUSEDKEYS(k->names) > ENTRIES_MAX)
        hv_clear(k->names);
}

sirius_known *sirius_known_new(pTHX_ const sirius_target *t)
{
    sirius_known *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->target = *t;
    k->entries = newHV();
    k->names = newHV();
    sr_buffer_init(&k->text);
    k->raws = calloc(PENDING_MAX, sizeof *k->raws);
    k->pieces = calloc((1 + MORE_MAX) * PENDING_MAX, sizeof *k->pieces);
    if (k->raws && k->pieces)
        return k;
    sirius_known_free(aTHX_ k);
    return NULL;
}

void sirius_known_free(pTHX_ sirius_known *k)
{
    SvREFCNT_dec((SV *)k->entries);
    SvREFCNT_dec((SV *)k->names);
    sr_buffer_free(&k->text);
    free(k->raws);
    free(k->pieces);
    free(k);
}
