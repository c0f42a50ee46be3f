#include "known.h"

#include "identity.h"

#include <stdlib.h>
#include <string.h>

enum {
    ENTRIES_MAX = 50000, /* then all is forgotten */
    PENDING_MAX = 1500,
};

typedef struct entry {
    U32 round; /* in which it was asked for last */
    U32 read;  /* in which it was read last */
    bool stale;
    bool
        changes; /* its address is used again and again, as those of closures: it is read before each use as well */
    bool sure;   /* of a sub: its name was known before, by its code */
    U32 trusted; /* the last round in which the stack has shown that it was this one */
    sirius_identity is;
    sirius_callee callee;
    sirius_finding finding; /* its text is behind it */
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

/* --- looking up --- */

/* What it is called, with the text in k->text. */
static void look_up(pTHX_ sirius_known *k, const sirius_raw *r, entry *e)
{
    sr_buffer_reset(&k->text);
    if (e->is.kind == SIRIUS_KIND_SUB) {
        sirius_lookup_sub(aTHX_ k->target.pid, &k->text, r, e->is.by_code, &e->finding);
    } else if (e->is.kind == SIRIUS_KIND_STATEMENT) {
        sirius_lookup_statement(aTHX_ k->target.pid, &k->text, r, &e->finding);
    } else if (e->is.kind == SIRIUS_KIND_OPERATION) {
        sirius_lookup_operation(k->target.pid, &k->text, r, &e->finding);
    } else {
        e->finding.at = r->pad.its;
        e->finding.found = r->pad.its != NULL;
    }
    e->finding.len = e->finding.found ? sr_buffer_len(&k->text) : 0;
}

/*
 * All closures of the same code have its name: its entry, which is that of one of them; NULL: unknown. What is at the address of code
 * may be other code by now, but not with the same number.
 */
static SV **code_of(pTHX_ const sirius_known *k, const entry *e, bool make)
{
    sirius_members code = e->is.members;
    code.part[SIRIUS_SUB_BODY] = code.part[SIRIUS_SUB_PADS] = NULL;
    SV **found = hv_fetch(k->entries, (char *)&code, sizeof code, 0);
    return found || !make ? found : hv_store(k->entries, (char *)&code, sizeof code, newSVpvs(""), 0);
}

typedef struct given_name {
    const void *package;
    U32 hash;
    bool several;
} given_name;

/* NULL: none is known */
static given_name *given_name_of(pTHX_ sirius_known *k, const entry *e, const given_name *first)
{
    const sirius_members *m = &e->is.members;
    struct {
        const void *root, *seq;
    } key = {m->part[SIRIUS_SUB_ROOT], (const void *)(uintptr_t)m->number[SIRIUS_SUB_SEQ]};
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
    const given_name *name = sirius_identity_has_name(&e->is) ? given_name_of(aTHX_ k, e, NULL) : NULL;
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
    return a->is.kind != SIRIUS_KIND_SUB || (a->finding.root && a->finding.root == b->finding.root);
}

/* The entry, asked for in this round, and read in it if `again`; NULL: there is nothing */
static entry *get(pTHX_ sirius_known *k, sirius_kind kind, const void *at, I32 depth, bool again)
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
        memset(&e, 0, sizeof e);
        e.finding.there = e.finding.fresh = true;
        if (!sirius_identity_read(k->target.pid, kind, at, depth, &r, &e.is))
            return NULL;
        e.changes = old && (old->changes || old->stale || !sirius_identity_same(&e.is, &old->is));
        if (kind == SIRIUS_KIND_SUB && e.changes && has_several_names(aTHX_ k, &e))
            sirius_identity_drop_name(&e.is);
        if (!old || old->stale || !sirius_identity_same(&e.is, &old->is)) {
            SV **code = kind == SIRIUS_KIND_SUB ? code_of(aTHX_ k, &e, false) : NULL;
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

static entry *ask(pTHX_ sirius_known *k, sirius_kind kind, const void *at, I32 depth)
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
    f.seq = e->is.kind == SIRIUS_KIND_STATEMENT ? e->is.members.number[SIRIUS_STATEMENT_SEQ] : 0;
    return f;
}

sirius_finding sirius_known_sub(pTHX_ sirius_known *k, const CV *at)
{
    return finding_of(ask(aTHX_ k, SIRIUS_KIND_SUB, at, 0));
}

sirius_finding sirius_known_sub_again(pTHX_ sirius_known *k, const CV *at)
{
    return finding_of(get(aTHX_ k, SIRIUS_KIND_SUB, at, 0, true));
}

sirius_finding sirius_known_statement(pTHX_ sirius_known *k, const COP *at)
{
    return finding_of(ask(aTHX_ k, SIRIUS_KIND_STATEMENT, at, 0));
}

sirius_finding sirius_known_operation(pTHX_ sirius_known *k, const OP *at)
{
    return finding_of(ask(aTHX_ k, SIRIUS_KIND_OPERATION, at, 0));
}

sirius_callee *sirius_known_callee(pTHX_ sirius_known *k, const OP *at)
{
    entry *e = ask(aTHX_ k, SIRIUS_KIND_OPERATION, at, 0);
    return e ? &e->callee : NULL;
}

bool sirius_known_has_pad(pTHX_ sirius_known *k, const CV *at, I32 depth, const PAD *variables)
{
#if PERL_VERSION >= 22
    bool has = false;
    for (int again = 0; again < 2 && !has && variables; again++) { /* others may be there now */
        const entry *sub = get(aTHX_ k, SIRIUS_KIND_SUB, at, 0, again), *e = NULL;
        if (sub && !sub->finding.xs)
            e = get(aTHX_ k, SIRIUS_KIND_PAD, sub->is.members.part[SIRIUS_SUB_PADS], depth, again);
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
    SV **code = code_of(aTHX_ k, e, true);
    e->sure = code != NULL;
    if (code)
        put(aTHX_ * code, e, e->text);
}

/* The same for the name that it was given. */
static void learn_name(pTHX_ sirius_known *k, const entry *e)
{
    const sirius_members *m = &e->is.members;
    given_name its = {m->part[SIRIUS_SUB_PACKAGE], m->number[SIRIUS_SUB_HASH], false};
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
        n += sirius_identity_pieces(&e->is, &k->raws[i], k->pieces + n);
    }
    PERL_UNUSED_CONTEXT;
    bool read = sirius_remote_pieces(k->target.pid, k->pieces, n);
    for (size_t i = 0; i < k->n; i++) {
        entry *e = entry_of(k->pending[i]);
        e->stale = !read || !sirius_identity_still(&e->is, &k->raws[i]);
        if (e->stale)
            same = same && read && (e->is.kind == SIRIUS_KIND_PAD || (e->sure && e->trusted == k->round));
        else if (e->is.kind == SIRIUS_KIND_SUB && e->finding.closure && !e->sure)
            learn(aTHX_ k, e);
        else if (e->changes && sirius_identity_has_name(&e->is) && !e->finding.closure)
            learn_name(aTHX_ k, e);
    }
    return same;
}

void sirius_known_trust(pTHX_ sirius_known *k, const CV *at)
{
    entry *e = ask(aTHX_ k, SIRIUS_KIND_SUB, at, 0);
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
    k->pieces = calloc((size_t)SIRIUS_IDENTITY_PIECES * PENDING_MAX, sizeof *k->pieces);
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
