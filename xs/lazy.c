/*
 * lazy: values of %env that cost something to make and are seldom read: psgix.io, psgix.informational,
 * psgix.request_id.
 *
 * Each is a scalar with magic that makes the value on the first read and then goes; an assignment removes the
 * magic too. The reader may have values on perl's stack and continue with its own copy of the stack pointer
 * (copying a hash, building a list of arguments), so the value is made without calling perl.
 */
#include "lazy.h"

static int lazy_get(pTHX_ SV *sv, MAGIC *mg);
static int lazy_set(pTHX_ SV *sv, MAGIC *mg);
static int lazy_local(pTHX_ SV *sv, MAGIC *mg);

const MGVTBL sirius_lazy_vtbl = {.svt_get = lazy_get, .svt_set = lazy_set, .svt_local = lazy_local};

static sirius_lazy_make *makers[SIRIUS_LAZY_KINDS];

void sirius_lazy_boot(sirius_lazy kind, sirius_lazy_make *make)
{
    makers[kind] = make;
}

SV *sirius_lazy_new(pTHX_ sirius_lazy kind, SV *serial)
{
    SV *sv = newSV(0);
    MAGIC *mg = sv_magicext(sv, serial, PERL_MAGIC_ext, &sirius_lazy_vtbl, NULL, 0);
    mg->mg_flags |= MGf_LOCAL;
    mg->mg_private = (U16)kind;
    return sv;
}

/* The magic is removed first, since it must not act on the value. */
static int lazy_get(pTHX_ SV *sv, MAGIC *mg)
{
    SV *value = makers[mg->mg_private](aTHX_(UV) SvIVX(mg->mg_obj));
    sv_unmagicext(sv, PERL_MAGIC_ext, (MGVTBL *)mg->mg_virtual);
    sv_setsv_nomg(sv, value);
    SvREFCNT_dec(value);
    return 0;
}

static int lazy_set(pTHX_ SV *sv, MAGIC *mg)
{
    sv_unmagicext(sv, PERL_MAGIC_ext, (MGVTBL *)mg->mg_virtual);
    return 0;
}

/* The new value of `local $env->{...}` is undefined, as with any other scalar. */
static int lazy_local(pTHX_ SV *sv, MAGIC *mg)
{
    PERL_UNUSED_CONTEXT;
    PERL_UNUSED_ARG(sv);
    PERL_UNUSED_ARG(mg);
    return 0;
}
