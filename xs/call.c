/* call: calls code of the application, past which nothing of it gets. */
#include "call.h"

#include "sirius.h"

SV *sirius_call(pTHX_ sirius *s, SV *code, SV *arg1, SV *arg2)
{
    sig_atomic_t was_inside = s->inside.now;
    const void *outer = s->inside.outer, *frame = s->inside.frame;
    dSP;
    if (!SIRIUS_FREES_TEMPORARIES) {
        ENTER;
        SAVETMPS;
    }
    /* a stack of its own, so that last, next and goto find no loop or label outside */
    PUSHSTACKi(PERLSI_REQUIRE);
    PUSHMARK(SP);
    XPUSHs(arg1);
    if (arg2)
        XPUSHs(arg2);
    PUTBACK;
    SV *hold = NULL;
    s->inside.outer = PL_top_env;
    s->inside.frame = PL_curstackinfo;
    /* the order matters: a handler must see where the call begins before it finds us outside */
    atomic_signal_fence(memory_order_seq_cst);
    s->inside.now = 0;
    int n = call_sv(code, G_SCALAR | G_EVAL);
    SPAGAIN;
    SV *result = n == 1 ? POPs : NULL;
    PUTBACK;
    POPSTACK;
    if (SvROK(ERRSV) || SvTRUE_nomg(ERRSV)) { /* an exception object may be false, or die when it is asked */
        result = NULL;
        /* the next call clears $@, and freeing the object there would be outside any eval */
        if (SvROK(ERRSV) && !SvGMAGICAL(ERRSV))
            hold = newSVsv(ERRSV);
    }
    if (!SIRIUS_FREES_TEMPORARIES) {
        SvREFCNT_inc(result);
        FREETMPS;
        LEAVE;
        sv_2mortal(result);
    }
    if (hold)
        sv_2mortal(hold);
    if (sirius_forked(
            s)) /* a child that the application has forked came back here: it must not serve requests */
        my_exit(0);
    s->inside.now = was_inside;
    atomic_signal_fence(memory_order_seq_cst);
    s->inside.outer = outer;
    s->inside.frame = frame;
    return result;
}

SV *sirius_call_own(pTHX_ sirius *s, const char *name, SV *arg1, SV *arg2)
{
    return sirius_call(aTHX_ s, sv_2mortal(newRV_inc((SV *)get_cv(name, GV_ADD))), arg1, arg2);
}
