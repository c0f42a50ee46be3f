#include "envpool.h"

envpool_env *envpool_find(envpool_env *pool, uint8_t listener, SV *const *fields, unsigned n_fields)
{
    for (int i = 0; i < ENVPOOL_SHAPES; i++) {
        envpool_env *env = &pool[i];
        if (env->hv && !env->in_use && env->listener == listener && env->n_fields == n_fields &&
            memcmp(env->fields, fields, n_fields * sizeof *fields) == 0)
            return env;
    }
    return NULL;
}

void envpool_forget(pTHX_ envpool_env *env)
{
    HV *hv = env->hv;
    if (!hv)
        return;
    for (unsigned i = 0; i < env->n_fields; i++)
        SvREFCNT_dec_NN(env->fields[i]);
    env->n_fields = 0;
    env->hv = NULL; /* first: a DESTROY may come back here */
    env->in_use = false;
    SvREFCNT_dec_NN((SV *)hv);
    sirius_input_forget(aTHX_ & env->input);
}

envpool_env *envpool_claim(pTHX_ envpool_env *pool, unsigned *clock)
{
    for (int i = 0; i < ENVPOOL_SHAPES; i++) {
        envpool_env *env = &pool[(*clock)++ % ENVPOOL_SHAPES];
        if (env->in_use)
            continue;
        envpool_forget(aTHX_ env);
        return env;
    }
    return NULL;
}

SV *envpool_make(pTHX_ envpool_env *env, const envpool_slot *slot)
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
        return sirius_lazy_new(aTHX_(sirius_lazy) slot->lazy_kind);
    }
    return newSVpvs("");
}

void envpool_seal(pTHX_ envpool_env *env, uint8_t listener, SV *const *fields, unsigned n_fields)
{
    HV *hv = env->hv;
    unsigned n = 0;
    env->listener = listener;
    env->n_fields = (uint8_t)n_fields;
    for (unsigned i = 0; i < n_fields; i++)
        env->fields[i] = SvREFCNT_inc_simple_NN(fields[i]);
    env->flags = SvFLAGS(hv);
    env->array = HvARRAY(hv);
    env->max = HvMAX(hv);
    for (STRLEN b = 0; b <= env->max; b++)
        for (HE *he = env->array[b]; he; he = HeNEXT(he)) {
            unsigned i = 0;
            while (env->slots[i].he != he)
                i++;
            env->order[n++] = (uint8_t)i;
        }
}

/* --- is it still what was put there? --- */

/* A string of type PV and nothing more: no magic, no number, no UTF-8, not read-only, not blessed. */
static bool is_plain_string(const SV *sv)
{
    U32 more = SvFLAGS(sv) & ~(U32)(SVTYPEMASK | SVf_POK | SVp_POK | SVf_IsCOW);
    return SvTYPE(sv) == SVt_PV && !more && SvPOK(sv);
}

/* Numbers may have got a string beside them; what counts is what Perl code sees. */
static bool same_const(const SV *sv, const SV *master)
{
    if (SvROK(master))
        return SvFLAGS(sv) == SvFLAGS(master) && SvRV(sv) == SvRV(master);
    if (SvPOK(master))
        return is_plain_string(sv) && SvCUR(sv) == SvCUR(master) &&
               memcmp(SvPVX_const(sv), SvPVX_const(master), SvCUR(sv)) == 0;
    return SvFLAGS(sv) == SvFLAGS(master) && SvIVX(sv) == SvIVX(master);
}

static bool same_array(const SV *sv, const AV *master)
{
    if (SvTYPE(sv) != SVt_IV || !SvROK(sv) || SvFLAGS(sv) & (SVf_READONLY | SVs_GMG | SVs_SMG | SVs_RMG))
        return false;
    const AV *av = (const AV *)SvRV(sv);
    if (SvREFCNT(av) != 1 || SvFLAGS(av) != SvFLAGS(master) || AvFILLp(av) != AvFILLp(master))
        return false;
    for (SSize_t i = 0; i <= AvFILLp(av); i++)
        if (!AvARRAY(av)[i] || SvREFCNT(AvARRAY(av)[i]) != 1 ||
            !same_const(AvARRAY(av)[i], AvARRAY(master)[i]))
            return false;
    return true;
}

static bool same(pTHX_ envpool_env *env, const envpool_slot *slot)
{
    if (SvREFCNT(slot->value) != 1)
        return false;
    switch ((envpool_kind)slot->kind) {
    case ENVPOOL_TEXT:
        return is_plain_string(slot->value);
    case ENVPOOL_NUMBER:
        return SvFLAGS(slot->value) == (SVt_NV | SVf_NOK | SVp_NOK);
    case ENVPOOL_CONST:
        return same_const(slot->value, slot->master);
    case ENVPOOL_ARRAY:
        return same_array(slot->value, (const AV *)slot->master);
    case ENVPOOL_INPUT:
        if (!sirius_input_reusable(aTHX_ & env->input, slot->value))
            return false;
        sirius_input_empty(aTHX_ & env->input);
        return true;
    case ENVPOOL_LAZY:
        return sirius_lazy_untouched(aTHX_ slot->value);
    }
    return false;
}

/* --- scrubbing --- */

/* Keys that were added, while our own are all in their places. False: the hash is another one now. */
static bool find_added(pTHX_ envpool_env *env, AV **added)
{
    HV *hv = env->hv;
    unsigned n = 0;
    if (SvREFCNT(hv) != 1 || SvFLAGS(hv) != env->flags || HvARRAY(hv) != env->array || HvMAX(hv) != env->max)
        return false;
    for (STRLEN b = 0; b <= env->max; b++)
        for (HE *he = env->array[b]; he; he = HeNEXT(he)) {
            const envpool_slot *slot = n < env->n_slots ? &env->slots[env->order[n]] : NULL;
            if (slot && slot->he == he && HeKEY_hek(he) == SvSHARED_HEK_FROM_PV(SvPVX_const(slot->key))) {
                n++;
                continue;
            }
            if (!*added)
                *added = (AV *)sv_2mortal((SV *)newAV());
            av_push(*added, newSVhek(HeKEY_hek(he)));
        }
    return n == env->n_slots;
}

void envpool_scrub(pTHX_ envpool_env *env)
{
    AV *added = NULL;
    ENTER;
    SAVETMPS;
    bool ours = find_added(aTHX_ env, &added);
    for (SSize_t i = 0; ours && added && i <= AvFILLp(added); i++)
        (void)hv_delete_ent(env->hv, AvARRAY(added)[i], G_DISCARD, 0);
    if (ours && added) /* a DESTROY of what was deleted may have looked at it */
        ours = SvREFCNT(env->hv) == 1 && HvTOTALKEYS(env->hv) == env->n_slots;
    for (unsigned i = 0; ours && i < env->n_slots; i++) {
        envpool_slot *slot = &env->slots[i];
        if (HeVAL(slot->he) == slot->value && same(aTHX_ env, slot))
            continue;
        SV *old = HeVAL(slot->he);
        HeVAL(slot->he) = slot->value = envpool_make(aTHX_ env, slot);
        SvREFCNT_dec(old);
        ours = SvREFCNT(env->hv) == 1 && SvFLAGS(env->hv) == env->flags; /* it too may have had a DESTROY */
    }
    env->in_use = false;
    if (!ours)
        envpool_forget(aTHX_ env);
    FREETMPS;
    LEAVE;
}
