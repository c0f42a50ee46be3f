#include "known.h"

#include "given.h"
#include "identity.h"

#include <stdlib.h>
#include <string.h>

enum {
    ENTRIES_MAX = 50000, /* then all is forgotten */
    PENDING_MAX = 1500,
    YOUNG = 12, /* samples: names that are given in turn change at an address meanwhile */
};

typedef struct entry {
    U32 round; /* in which it was asked for last */
    U32 read;  /* in which it was read last */
    U32 since; /* the sample in which it was first there */
    bool stale;
    /* its address is used again and again, as those of closures: it is read before each use as well */
    bool changes;
    bool sure;    /* of a sub: its name was known before, by its code */
    bool several; /* of a closure whose name counts: its code has several */
    /* the last round in which it was told by its code, as it had been given its name just before */
    U32 by_code;
    U32 trusted; /* the last round in which the stack has shown that it was this one */
    sirius_identity is;
    sirius_callee callee;
    sirius_finding finding; /* its text is behind it */
    sirius_finding
        code; /* of a closure that was given a name: without that. Its text is behind the other one */
    char text[];
} entry;

struct sirius_known {
    sirius_target target;
    HV *entries;          /* by address, depth and kind: each value has an entry as its bytes */
    bool settled, doubts; /* see known.h */
    sirius_given *given;  /* the names of closures */
    U32 round, sample;    /* a sample has one or more of them */
    bool mixed;           /* what was told of a sub since the last begin is of one code and of another */
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
 * All closures of the same code have its name: its entry, which is that of one of them; NULL: unknown. What
 * is at the address of code may be other code by now, but not with the same number.
 */
static SV **code_of(pTHX_ const sirius_known *k, const entry *e, bool make)
{
    sirius_members code = e->is.members;
    code.part[SIRIUS_SUB_BODY] = code.part[SIRIUS_SUB_PADS] = NULL;
    SV **found = hv_fetch(k->entries, (char *)&code, sizeof code, 0);
    return found || !make ? found : hv_store(k->entries, (char *)&code, sizeof code, newSVpvs(""), 0);
}

static void put(pTHX_ SV *to, const entry *e, const char *text)
{
    size_t len = e->finding.len + e->code.len;
    memcpy(SvGROW(to, sizeof *e + len + 1), e, sizeof *e);
    memcpy(entry_of(to)->text, len ? text : "", len);
}

/* What is remembered of it does not count: a name may have been read while it was given, or could not be. */
static bool is_nothing(const sirius_known *k, const entry *e)
{
    return e->stale || (sirius_identity_is_given(&e->is) && (k->settled || !e->finding.found));
}

/*
 * What was asked for in this round stays what it was, even if it has changed since: a closure may be gone
 * when its name is wanted, and something else may be at its address.
 */
static bool needs_reading(const sirius_known *k, const entry *e, bool again)
{
    if (e->read == k->round)
        return false;
    return again || (e->round != k->round && (e->changes || is_nothing(k, e)));
}

/* Another closure of the same code is as good */
static bool same_code(const entry *a, const entry *b)
{
    return a->is.kind != SIRIUS_KIND_SUB || (a->finding.root && a->finding.root == b->finding.root);
}

static sirius_given_verdict judge_name(pTHX_ sirius_known *k, entry *e, const entry *old)
{
    sirius_given_verdict given = {.sure = false};
    if (e->is.kind == SIRIUS_KIND_SUB)
        given = sirius_given_judge(aTHX_ k->given, &e->is, e->changes,
                                   old && old->finding.root == e->is.members.part[SIRIUS_SUB_ROOT]);
    e->several = given.several;
    return given;
}

/* What was looked up may be the name of another one by now. */
static void use_name(sirius_known *k, entry *e, const sirius_given_verdict *given)
{
    if (sirius_identity_has_name(&e->is) && e->finding.closure)
        sirius_given_anonymous(k->given, &e->is);
    if (!given->sure || e->finding.closure)
        return;
    sr_buffer_reset(&k->text);
    e->finding.found = sr_buffer_add(&k->text, given->name.at, given->name.len);
    e->finding.len = e->finding.found ? given->name.len : 0;
}

/* What it is called if its name does not count, with the text behind that one in k->text */
static void add_code(pTHX_ sirius_known *k, const sirius_raw *r, entry *e)
{
    if (!sirius_identity_is_given(&e->is) || e->finding.closure || e->finding.xs)
        return;
    sirius_lookup_sub(aTHX_ k->target.pid, &k->text, r, true, &e->code);
    e->code.len = e->code.found ? sr_buffer_len(&k->text) - e->finding.len : 0;
}

static bool has_name(const entry *e, const sirius_given_verdict *given)
{
    return given->sure && e->finding.found && e->finding.len == given->name.len &&
           memcmp(e->text, given->name.at, given->name.len) == 0;
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
        e.since = k->sample;
        if (!sirius_identity_read(k->target.pid, kind, at, depth, &r, &e.is))
            return NULL;
        e.changes = old && (old->changes || old->stale || !sirius_identity_same(&e.is, &old->is));
        sirius_given_verdict given = judge_name(aTHX_ k, &e, old);
        if (!old || is_nothing(k, old) || !sirius_identity_same(&e.is, &old->is)) {
            SV **code = kind == SIRIUS_KIND_SUB ? code_of(aTHX_ k, &e, false) : NULL;
            if (code) {
                e.finding = entry_of(*code)->finding;
                e.finding.fresh = true;
                e.sure = !e.several;
            } else {
                look_up(aTHX_ k, &r, &e);
                use_name(k, &e, &given);
                add_code(aTHX_ k, &r, &e);
            }
            k->mixed = k->mixed || (old && old->round == k->round && !same_code(&e, old));
            if (!found)
                found = hv_store(k->entries, (char *)&key, sizeof key, newSVpvs(""), 0);
            if (!found)
                return NULL;
            put(aTHX_ * found, &e, code ? entry_of(*code)->text : sr_buffer_at(&k->text));
        }
        entry *now = entry_of(*found);
        if (sirius_identity_has_name(&now->is) && !now->finding.closure)
            now->sure = has_name(now, &given);
        now->read = k->round;
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

/* perl takes it out of its glob before it runs: that does not mean that it was given its name. */
static bool is_begin(const entry *e)
{
    static const char name[] = "::BEGIN";
    size_t len = e->finding.len, its = sizeof name - 1;
    return len >= its && memcmp(e->text + len - its, name, its) == 0;
}

static bool is_given(const entry *e)
{
    return sirius_identity_is_given(&e->is) && !e->finding.closure && !e->sure && !is_begin(e);
}

/*
 * A sub that was given its name may have another one than it had when the stack was read, or than its code is
 * known for. Until that is out, it is called by its code, or not at all if that is C.
 */
static bool is_doubtful(const sirius_known *k, const entry *e)
{
    bool young = k->sample - e->since < YOUNG || (e->several && e->finding.fresh);
    bool in_turn = !k->settled && (e->changes || young);
    return is_given(e) && (in_turn || !e->finding.found); /* it was looked up while it was given */
}

/*
 * Whether it counts though it is not there any more. A name that was given does not if it was not read since:
 * all of that code may have another one by now.
 */
static bool is_trusted(const sirius_known *k, const entry *e)
{
    bool sure = e->sure && (!sirius_identity_has_name(&e->is) || e->finding.closure || e->read == k->round);
    return e->is.kind == SIRIUS_KIND_PAD || ((sure || e->by_code == k->round) && e->trusted == k->round);
}

static sirius_finding finding_of(sirius_known *k, entry *e)
{
    sirius_finding f;
    memset(&f, 0, sizeof f);
    if (!e)
        return f;
    f = e->finding;
    f.text = e->text;
    if (is_doubtful(k, e)) {
        k->doubts = true;
        e->by_code = k->round;
        f = e->code;
        f.text = e->text + e->finding.len;
        f.there = true;
        f.fresh = e->finding.fresh;
    }
    f.fresh = f.fresh && !k->settled;
    f.given = is_given(e) && !f.closure;
    f.reused = e->changes;
    f.stale = k->mixed || (e->stale && !is_trusted(k, e));
    f.sure = e->sure;
    f.seq = e->is.kind == SIRIUS_KIND_STATEMENT ? e->is.members.number[SIRIUS_STATEMENT_SEQ] : 0;
    return f;
}

sirius_finding sirius_known_sub(pTHX_ sirius_known *k, const CV *at)
{
    return finding_of(k, ask(aTHX_ k, SIRIUS_KIND_SUB, at, 0));
}

sirius_finding sirius_known_sub_again(pTHX_ sirius_known *k, const CV *at)
{
    return finding_of(k, get(aTHX_ k, SIRIUS_KIND_SUB, at, 0, true));
}

sirius_finding sirius_known_statement(pTHX_ sirius_known *k, const COP *at)
{
    return finding_of(k, ask(aTHX_ k, SIRIUS_KIND_STATEMENT, at, 0));
}

sirius_finding sirius_known_operation(pTHX_ sirius_known *k, const OP *at)
{
    return finding_of(k, ask(aTHX_ k, SIRIUS_KIND_OPERATION, at, 0));
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
            same = same && read && is_trusted(k, e);
        else if (e->is.kind == SIRIUS_KIND_SUB && e->finding.closure && !e->sure)
            learn(aTHX_ k, e);
        if (!e->stale && sirius_identity_has_name(&e->is) && e->finding.found &&
            (e->changes || e->finding.fresh))
            sirius_given_learn(aTHX_ k->given, &e->is, sr_bytes_of(e->text, e->finding.len));
    }
    return same;
}

void sirius_known_settle(sirius_known *k)
{
    k->settled = true;
}

bool sirius_known_doubts(const sirius_known *k)
{
    return k->doubts;
}

void sirius_known_trust(pTHX_ sirius_known *k, const CV *at)
{
    entry *e = ask(aTHX_ k, SIRIUS_KIND_SUB, at, 0);
    if (e)
        e->trusted = k->round;
}

void sirius_known_begin(pTHX_ sirius_known *k, bool again)
{
    for (size_t i = 0; i < k->n; i++)
        entry_of(k->pending[i])->finding.fresh = false;
    k->n = 0;
    k->mixed = k->settled = k->doubts = false;
    k->round++;
    k->sample += !again;
    if (HvUSEDKEYS(k->entries) > ENTRIES_MAX)
        hv_clear(k->entries);
    sirius_given_begin(aTHX_ k->given, k->sample, ENTRIES_MAX);
}

sirius_known *sirius_known_new(pTHX_ const sirius_target *t)
{
    sirius_known *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->target = *t;
    k->entries = newHV();
    k->given = sirius_given_new(aTHX);
    sr_buffer_init(&k->text);
    k->raws = calloc(PENDING_MAX, sizeof *k->raws);
    k->pieces = calloc((size_t)SIRIUS_IDENTITY_PIECES * PENDING_MAX, sizeof *k->pieces);
    if (k->given && k->raws && k->pieces)
        return k;
    sirius_known_free(aTHX_ k);
    return NULL;
}

void sirius_known_free(pTHX_ sirius_known *k)
{
    SvREFCNT_dec((SV *)k->entries);
    sirius_given_free(aTHX_ k->given);
    sr_buffer_free(&k->text);
    free(k->raws);
    free(k->pieces);
    free(k);
}
