#include "given.h"

#include <stdlib.h>

enum {
    SURE_TIMES = 16, /* that closures of a code had a name, and no other one */
    DOUBT = 2,       /* less these for each time that it looked like another one: sure until none is left */
    OTHER_TIMES = 4, /* that it looked like the same other one: it is one */
};

typedef struct given_name {
    const void *package;
    U32 hash;
    U32 times;                 /* samples in which it was there */
    U32 sample;                /* the last of them: stacks of one may be in step with what gives the names */
    const void *other_package; /* what it looked like last when it was not this one */
    U32 other_hash, other_sample;
    U32 others; /* samples in a row */
    bool sure;
    bool several;
    bool fleeting; /* one was at the address of an earlier one */
    size_t len;
    char text[];
} given_name;

struct sirius_given {
    HV *by_code;   /* each value has a given_name as its bytes */
    U32 anonymous; /* the hash of __ANON__; 0: unknown */
    U32 sample;
};

static given_name *name_in(SV *sv)
{
    return (given_name *)SvPVX(sv);
}

/* NULL: none is known, and none is to be made. */
static given_name *find(pTHX_ sirius_given *g, const sirius_identity *is, const sr_bytes *make)
{
    const sirius_members *m = &is->members;
    struct {
        const void *root;
        U32 seq, anonymous;
    } key = {m->part[SIRIUS_SUB_ROOT], m->number[SIRIUS_SUB_SEQ], m->number[SIRIUS_SUB_HASH] == g->anonymous};
    SV **found = hv_fetch(g->by_code, (char *)&key, sizeof key, 0);
    if (!found && make) {
        given_name first = {m->part[SIRIUS_SUB_PACKAGE], m->number[SIRIUS_SUB_HASH], .len = make->len};
        SV *sv = newSVpvn((char *)&first, sizeof first);
        sv_catpvn(sv, make->at, make->len);
        found = hv_store(g->by_code, (char *)&key, sizeof key, sv, 0);
    }
    return found ? name_in(*found) : NULL;
}

static bool is_that(const given_name *name, const sirius_identity *is)
{
    return name->hash == is->members.number[SIRIUS_SUB_HASH] &&
           name->package == is->members.part[SIRIUS_SUB_PACKAGE];
}

void sirius_given_anonymous(sirius_given *g, const sirius_identity *is)
{
    g->anonymous = is->members.number[SIRIUS_SUB_HASH];
}

/* Another name, or what was read while it was given: that looks otherwise each time. */
static void doubt(given_name *name, const sirius_identity *is, U32 sample)
{
    const void *package = is->members.part[SIRIUS_SUB_PACKAGE];
    U32 hash = is->members.number[SIRIUS_SUB_HASH];
    if (name->other_package != package || name->other_hash != hash)
        name->others = 0;
    if (hash && name->other_sample != sample)
        name->others++;
    name->several = name->several || name->others == OTHER_TIMES;
    name->other_package = package;
    name->other_hash = hash;
    name->other_sample = sample;
    name->times -= name->times < DOUBT ? name->times : DOUBT;
    name->sure = name->sure && name->times;
}

sirius_given_verdict sirius_given_judge(pTHX_ sirius_given *g, sirius_identity *is, bool changes, bool again)
{
    sirius_given_verdict v = {.sure = false};
    given_name *name = sirius_identity_has_name(is) ? find(aTHX_ g, is, NULL) : NULL;
    if (!name)
        return v;
    name->fleeting = name->fleeting || (changes && again);
    if (name->several && (name->fleeting || changes)) {
        sirius_identity_drop_name(is);
        return v;
    }
    if (!is_that(name, is))
        doubt(name, is, g->sample);
    v.several = name->several;
    v.sure = name->sure && !name->several && is_that(name, is);
    v.name = sr_bytes_of(name->text, name->len);
    return v;
}

void sirius_given_learn(pTHX_ sirius_given *g, const sirius_identity *is, sr_bytes text)
{
    given_name *name = find(aTHX_ g, is, &text);
    if (!name)
        return;
    name->several = name->several || !is_that(name, is);
    if (name->sample != g->sample && is_that(name, is) && name->times < SURE_TIMES)
        name->times++;
    name->sure = name->sure || name->times == SURE_TIMES;
    name->sample = g->sample;
}

void sirius_given_begin(pTHX_ sirius_given *g, U32 sample, U32 most)
{
    g->sample = sample;
    if (HvUSEDKEYS(g->by_code) > most)
        hv_clear(g->by_code);
}

sirius_given *sirius_given_new(pTHX)
{
    sirius_given *g = calloc(1, sizeof *g);
    if (g)
        g->by_code = newHV();
    return g;
}

void sirius_given_free(pTHX_ sirius_given *g)
{
    if (!g)
        return;
    SvREFCNT_dec((SV *)g->by_code);
    free(g);
}
