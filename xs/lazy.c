/*
 * lazy: values of %env that cost something to make and are seldom read: psgix.io, psgix.informational.
 *
 * Each is a scalar with magic that makes the value on the first read and then goes; an assignment removes the
 * magic too. The reader may have values on perl's stack and continue with its own copy of the stack pointer
 * (copying a hash, building a list of arguments), so the value is made without calling perl.
 */
#include "lazy.h"

static int lazy_get(pTHX_ SV *sv, MAGIC *mg);
static int lazy_set(pTHX_ SV *sv, MAGIC *mg);
static int lazy_local(pTHX_ SV *sv, MAGIC *mg);

static const MGVTBL lazy_vtbl[] = {
    [SIRIUS_LAZY_IO] = {.svt_get = lazy_get, .svt_set = lazy_set, .svt_local = lazy_local},
    [SIRIUS_LAZY_INFORMATIONAL] = {.svt_get = lazy_get, .svt_set = lazy_set, .svt_local = lazy_local},
};

static sirius_lazy_make *makers[sizeof lazy_vtbl / sizeof lazy_vtbl[0]];

void sirius_lazy_boot(sirius_lazy kind, sirius_lazy_make *make)
{
    makers[kind] = make;
}

/* The serial of a turn is in mg_ptr, with mg_len 0 so that perl does not free it. */
SV *sirius_lazy_new(pTHX_ sirius_lazy kind)
{
    SV *sv = newSV(0);
    sv_magicext(sv, NULL, PERL_MAGIC_ext, &lazy_vtbl[kind], NULL, 0)->mg_flags |= MGf_LOCAL;
    return sv;
}

void sirius_lazy_arm(pTHX_ SV *sv, UV serial)
{
    PERL_UNUSED_CONTEXT;
    SvMAGIC(sv)->mg_ptr = INT2PTR(char *, serial);
}

bool sirius_lazy_untouched(pTHX_ const SV *sv, sirius_lazy kind)
{
    PERL_UNUSED_CONTEXT;
    if (SvTYPE(sv) != SVt_PVMG || SvROK(sv) || SvOK(sv) || SvREADONLY(sv))
        return false;
    const MAGIC *mg = SvMAGIC(sv);
    return mg && mg->mg_virtual == &lazy_vtbl[kind] && !mg->mg_moremagic && !mg->mg_obj;
}

/* The magic is removed first, since it must not act on the value. */
static int lazy_get(pTHX_ SV *sv, MAGIC *mg)
{
    const MGVTBL *vtbl = mg->mg_virtual;
    SV *value = makers[vtbl - lazy_vtbl](aTHX_ PTR2UV(mg->mg_ptr));
    sv_unmagicext(sv, PERL_MAGIC_ext, (MGVTBL *)vtbl);
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
