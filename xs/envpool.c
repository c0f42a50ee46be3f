#include "envpool.h"

#include "input.h"
#include "lazy.h"

void envpool_init(envpool *pool)
{
    Newxz(pool->of, ENVPOOL_SHAPES, envpool_env);
}

envpool_env *envpool_find(const envpool *pool, uint8_t site, SV *const *fields, unsigned n_fields)
{
    for (int i = 0; i < ENVPOOL_SHAPES; i++) {
        envpool_env *env = &pool->of[i];
        if (env->hv && !env->in_use && env->site == site && env->n_fields == n_fields &&
            memcmp(env->fields, fields, n_fields * sizeof *fields) == 0)
            return env;
    }
    return NULL;
}

/* --- the reference --- */

SV *envpool_ref(pTHX_ envpool_env *env)
{
    if (!env->ref)
        env->ref = newRV_inc((SV *)env->hv);
    return env->ref;
}

/* The reference is $_[0] of the application, which may assign to it, weaken it or keep a reference to it. */
bool envpool_ref_intact(const envpool_env *env)
{
    const SV *ref = env->ref;
    return ref && SvREFCNT(ref) == 1 && SvFLAGS(ref) == (SVt_IV | SVf_ROK) && SvRV(ref) == (SV *)env->hv;
}

static void ref_drop(pTHX_ envpool_env *env)
{
    SV *ref = env->ref;
    env->ref = NULL;
    SvREFCNT_dec(ref);
}

/* --- making and forgetting --- */

void envpool_forget(pTHX_ envpool_env *env)
{
    HV *hv = env->hv;
    if (!hv)
        return;
    for (unsigned i = 0; i < env->n_fields; i++)
        SvREFCNT_dec_NN(env->fields[i]);
    env->n_fields = 0;
    env->hv = NULL; /* first of all: a DESTROY may come back here */
    env->in_use = false;
    ref_drop(aTHX_ env);
    SvREFCNT_dec(env->serial);
    env->serial = NULL;
    SvREFCNT_dec_NN((SV *)hv);
    sirius_input_forget(aTHX_ & env->input);
}

void envpool_free(pTHX_ envpool *pool)
{
    for (int i = 0; pool->of && i < ENVPOOL_SHAPES; i++)
        envpool_forget(aTHX_ & pool->of[i]);
    Safefree(pool->of);
}

envpool_env *envpool_claim(pTHX_ envpool *pool)
{
    for (int i = 0; i < ENVPOOL_SHAPES; i++) {
        envpool_env *env = &pool->of[pool->clock++ % ENVPOOL_SHAPES];
        if (env->in_use)
            continue;
        envpool_forget(aTHX_ env);
        return env;
    }
    return NULL;
}

/* Makes a value for a slot, by its kind. Texts begin empty, as they are set for each request. */
static SV *make(pTHX_ envpool_env *env, const envpool_slot *slot)
{
    switch ((envpool_kind)slot->kind) {
    case ENVPOOL_TEXT:
        break;
    case ENVPOOL_NUMBER:
        return newSVnv(0);
    case ENVPOOL_CONST:
        return newSVsv(slot->master);
    case ENVPOOL_ARRAY: {
        AV *from = (AV *)slot->master, *av = newAV();
        for (SSize_t i = 0; i <= AvFILLp(from); i++)
            av_push(av, newSVsv(AvARRAY(from)[i]));
        return newRV_noinc((SV *)av);
    }
    case ENVPOOL_INPUT:
        sirius_input_forget(aTHX_ & env->input);
        return sirius_input_new(aTHX_ & env->input);
    case ENVPOOL_LAZY:
        return sirius_lazy_new(aTHX_(sirius_lazy) slot->lazy_kind, env->serial);
    }
    return newSVpvs("");
}

bool envpool_seal(pTHX_ envpool_env *env, uint8_t site, SV *const *fields, unsigned n_fields)
{
    static UV seals;
    HV *hv = env->hv;
    unsigned n = 0;
    /* two slots have one key: the second store has freed what the first slot points to */
    if (HvTOTALKEYS(hv) != env->n_slots)
        return false;
    env->seal = ++seals;
    env->site = site;
    env->flags = SvFLAGS(hv);
    env->array = HvARRAY(hv);
    env->max = HvMAX(hv);
    for (STRLEN b = 0; b <= env->max; b++)
        for (HE **link = &env->array[b]; *link; link = &HeNEXT(*link)) {
            unsigned i = 0;
            while (i < env->n_slots && env->slots[i].he != *link)
                i++;
            if (i == env->n_slots)
                return false;
            env->slots[i].link = link;
            env->slots[i].hek = HeKEY_hek(*link);
            env->walk[n++] = &env->slots[i];
        }
    for (env->n_fields = 0; env->n_fields < n_fields; env->n_fields++)
        env->fields[env->n_fields] = SvREFCNT_inc_simple_NN(fields[env->n_fields]);
    env->n_special = env->n_numbers = env->n_lazy = 0;
    for (unsigned i = 0; i < env->n_slots; i++) {
        envpool_slot *slot = &env->slots[i];
        if (slot->kind == ENVPOOL_CONST && SvTYPE(slot->value) == SVt_IV && !SvROK(slot->value))
            env->numbers[env->n_numbers++] = slot;
        else if (slot->kind == ENVPOOL_LAZY)
            env->lazy[env->n_lazy++] = slot;
        else if (slot->kind != ENVPOOL_TEXT && slot->kind != ENVPOOL_NUMBER)
            env->special[env->n_special++] = slot;
    }
    return true;
}

const envpool_slot *envpool_slot_of(const envpool_env *env, SV *key)
{
    const HEK *hek = SvSHARED_HEK_FROM_PV(SvPVX_const(key));
    for (unsigned i = 0; i < env->n_slots; i++)
        if (env->slots[i].hek == hek)
            return &env->slots[i];
    return NULL;
}

/* --- is the value still the one that was stored? --- */

/*
 * Reference count and flags as one word: perl has them side by side. Whether a buffer is shared does not
 * matter.
 */
typedef struct head {
    U32 refcnt, flags;
} head;
_Static_assert(sizeof(head) == sizeof(uint64_t) &&
                   offsetof(SV, sv_flags) == offsetof(SV, sv_refcnt) + offsetof(head, flags),
               "perl's SVs have another layout");

static inline uint64_t whole_head_of(const SV *sv)
{
    uint64_t is;
    memcpy(&is, (const char *)sv + offsetof(SV, sv_refcnt), sizeof is);
    return is;
}

static inline uint64_t matters(uint64_t bits)
{
    const head which = {~(U32)0, ~(U32)SVf_IsCOW};
    uint64_t mask;
    memcpy(&mask, &which, sizeof mask);
    return bits & mask;
}

static inline uint64_t head_of(const SV *sv)
{
    return matters(whole_head_of(sv));
}

/* As memcmp() == 0, but inline: most values are too short to be worth a call. */
static inline bool same_bytes(const char *a, const char *b, STRLEN len)
{
    uint64_t wide, wide2;
    uint32_t word, word2;
    if (len > sizeof wide) {
        STRLEN i = 0;
        for (; i + sizeof wide < len; i += sizeof wide) {
            memcpy(&wide, a + i, sizeof wide);
            memcpy(&wide2, b + i, sizeof wide);
            if (wide != wide2)
                return false;
        }
        memcpy(&wide, a + len - sizeof wide, sizeof wide); /* the last eight may overlap those before */
        memcpy(&wide2, b + len - sizeof wide, sizeof wide);
        return wide == wide2;
    }
    if (len >= sizeof word) {
        uint32_t differ;
        memcpy(&word, a, sizeof word);
        memcpy(&word2, b, sizeof word);
        differ = word ^ word2;
        memcpy(&word, a + len - sizeof word, sizeof word);
        memcpy(&word2, b + len - sizeof word, sizeof word);
        return (differ | (word ^ word2)) == 0;
    }
    for (STRLEN i = 0; i < len; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* A number that was used as a string has other flags, so it does not get here. */
static inline bool same_const(const SV *sv, const SV *master)
{
    if (SvROK(master))
        return SvRV(sv) == SvRV(master);
    if (!SvPOK(master))
        return SvIVX(sv) == SvIVX(master);
    if (SvIsCOW(sv) && SvPVX_const(sv) == SvPVX_const(master))
        return true; /* nobody writes to a shared buffer */
    return SvCUR(sv) == SvCUR(master) && same_bytes(SvPVX_const(sv), SvPVX_const(master), SvCUR(sv));
}

static inline bool same_array(const SV *sv, const AV *master)
{
    const AV *av = (const AV *)SvRV(sv);
    if (SvREFCNT(av) != 1 || SvFLAGS(av) != SvFLAGS(master) || AvFILLp(av) != AvFILLp(master))
        return false;
    for (SSize_t i = 0; i <= AvFILLp(av); i++) {
        const SV *element = AvARRAY(av)[i], *right = AvARRAY(master)[i];
        if (!element || SvREFCNT(element) != 1 || SvFLAGS(element) != SvFLAGS(right) ||
            SvIVX(element) != SvIVX(right))
            return false;
    }
    return true;
}

/*
 * Whether the value is held by the pool alone and has exactly the flags that it was made with: a string is
 * then just a string, without magic, UTF-8, a number, a blessing or a lock. The contents of texts and numbers
 * do not matter, as the next request sets them.
 */
static inline bool same_kind(const envpool_slot *slot)
{
    return head_of(slot->value) == slot->head;
}

/* Compares the contents of a special value whose kind is the same. */
static inline __attribute__((always_inline)) bool same_value(pTHX_ const envpool_env *env,
                                                             const envpool_slot *slot)
{
    switch ((envpool_kind)slot->kind) {
    case ENVPOOL_TEXT:
    case ENVPOOL_NUMBER:
        return true;
    case ENVPOOL_CONST:
        return same_const(slot->value, slot->master);
    case ENVPOOL_ARRAY:
        return same_array(slot->value, (const AV *)slot->master);
    case ENVPOOL_INPUT:
        return sirius_input_reusable(aTHX_ & env->input, slot->value);
    case ENVPOOL_LAZY:
        return !sirius_lazy_touched(slot->value);
    }
    return false;
}

static void slot_set(envpool_slot *slot, SV *value)
{
    slot->value = value;
    slot->head = head_of(value);
    slot->number = slot->kind == ENVPOOL_CONST && SvIOK(value) ? SvIVX(value) : 0;
}

void envpool_put(pTHX_ envpool_env *env, envpool_slot *slot, SV *key)
{
    slot_set(slot, make(aTHX_ env, slot));
    slot->he = hv_store_ent(env->hv, key, slot->value, SvSHARED_HASH(key));
}

/* --- scrubbing --- */

/* Whether the hash is held by the pool and its reference, if there is one, and by nobody else. */
static bool same_hash(const envpool_env *env)
{
    HV *hv = env->hv;
    return SvREFCNT(hv) == (env->ref ? 2 : 1) && SvFLAGS(hv) == env->flags && HvARRAY(hv) == env->array &&
           HvMAX(hv) == env->max;
}

/*
 * Whether every entry is where it was, and there is no other. In walking order, each is reached through one
 * already checked.
 */
static bool nothing_moved(const envpool_env *env)
{
    if (HvTOTALKEYS(env->hv) != env->n_slots)
        return false;
    for (unsigned n = 0; n < env->n_slots; n++) {
        const envpool_slot *slot = env->walk[n];
        if (*slot->link != slot->he || HeKEY_hek(slot->he) != slot->hek)
            return false;
    }
    return true;
}

/*
 * Deletes the keys that were added. False: not all of our entries are in their places, so the hash was
 * changed.
 */
static bool delete_added(pTHX_ envpool_env *env)
{
    AV *added = (AV *)sv_2mortal((SV *)newAV());
    unsigned n = 0;
    for (STRLEN b = 0; b <= env->max; b++)
        for (HE *he = env->array[b]; he; he = HeNEXT(he)) {
            const envpool_slot *slot = n < env->n_slots ? env->walk[n] : NULL;
            if (slot && slot->he == he && HeKEY_hek(he) == slot->hek)
                n++;
            else
                av_push(added, newSVhek(HeKEY_hek(he)));
        }
    if (n != env->n_slots)
        return false;
    for (SSize_t i = 0; i <= AvFILLp(added); i++)
        (void)hv_delete_ent(env->hv, AvARRAY(added)[i], G_DISCARD, 0);
    return same_hash(env) && nothing_moved(env); /* a DESTROY of what was deleted may have changed the hash */
}

/*
 * Every request that changes nothing passes here, with about 27 slots, so the first loop has no branch for
 * each. Entries and values that are no longer ours are read before that is known: this is safe, since perl
 * never gives back their memory, and the bucket array was checked.
 */
bool envpool_untouched(pTHX_ const envpool_env *env)
{
    if (!same_hash(env) || HvTOTALKEYS(env->hv) != env->n_slots)
        return false;
    UV moved = 0;
    uint64_t changed = 0;
    for (unsigned n = 0; n < env->n_slots; n++) {
        const envpool_slot *slot = env->walk[n];
        moved |= (PTR2UV(*slot->link) ^ PTR2UV(slot->he)) |
                 (PTR2UV(HeKEY_hek(slot->he)) ^ PTR2UV(slot->hek)) |
                 (PTR2UV(HeVAL(slot->he)) ^ PTR2UV(slot->value));
        changed |= whole_head_of(slot->value) ^ slot->head;
    }
    if (moved || matters(changed))
        return false;
    changed = 0;
    for (unsigned n = 0; n < env->n_lazy; n++)
        changed |= sirius_lazy_touched(env->lazy[n]->value);
    for (unsigned n = 0; n < env->n_numbers; n++)
        changed |= (UV)SvIVX(env->numbers[n]->value) ^ (UV)env->numbers[n]->number;
    if (changed)
        return false;
    for (unsigned n = 0; n < env->n_special; n++)
        if (!same_value(aTHX_ env, env->special[n]))
            return false;
    return true;
}

static bool scrub(pTHX_ envpool_env *env)
{
    ENTER;
    SAVETMPS;
    bool ours = same_hash(env) && (nothing_moved(env) || delete_added(aTHX_ env));
    for (unsigned i = 0; ours && i < env->n_slots; i++) {
        envpool_slot *slot = &env->slots[i];
        if (HeVAL(slot->he) == slot->value && same_kind(slot) && same_value(aTHX_ env, slot))
            continue;
        SV *old = HeVAL(slot->he);
        slot_set(slot, make(aTHX_ env, slot));
        HeVAL(slot->he) = slot->value;
        SvREFCNT_dec(old);
        ours = same_hash(env); /* what was freed may have had a DESTROY too */
    }
    FREETMPS;
    LEAVE;
    /* a lazy value that somebody holds, and has not read, must not become one of the next request */
    return ours && SvREFCNT(env->serial) == 1 + (U32)env->n_lazy;
}

void envpool_give_back(pTHX_ envpool_env *env, bool untouched)
{
    if (!envpool_ref_intact(env)) {
        untouched = false;
        ref_drop(aTHX_ env);
    }
    bool ours = (untouched && SvREFCNT(env->hv) == 2) || scrub(aTHX_ env);
    env->in_use = false;
    if (ours)
        sirius_input_empty(aTHX_ & env->input);
    else
        envpool_forget(aTHX_ env);
}
