/* serve: serves one request: makes %env, calls the application, sends the response. */
#include "serve.h"

#include "call.h"
#include "env.h"
#include "envpool.h"
#include "report.h"
#include "responder.h"
#include "response.h"
#include "sirius.h"
#include "socket.h"
#include "wire.h"

/* --- one request --- */

static void answer(pTHX_ sirius *s, SV *res)
{
    sirius_turn *t = &s->turn;
    SV *writer = NULL;
    if (!res) {
        sirius_fail(aTHX_ s, "the application died", ERRSV);
        return;
    }
    if (SvGMAGICAL(res) || !SvROK(res) || SvTYPE(SvRV(res)) != SVt_PVCV) {
        sirius_respond(aTHX_ s, res, false, &writer);
        return;
    }
    SV *done = sirius_call(aTHX_ s, res, sirius_responder(aTHX_ s), NULL);
    if (!done)
        sirius_fail(aTHX_ s, "the application died", ERRSV);
    else if (t->wire.phase == SIRIUS_UNANSWERED && !t->io.taken)
        sirius_fail(aTHX_ s, "the application returned without calling the responder", NULL);
    else if (t->wire.phase == SIRIUS_STREAMING)
        sirius_fail(aTHX_ s, "the application returned without closing the writer", NULL);
}

/*
 * Runs the cleanup handlers. If they or %env are tied, finding them runs code of the application, so that is
 * done in an eval.
 */
static void run_handlers(pTHX_ sirius *s, SV *ref)
{
    SV *list = sirius_call_own(aTHX_ s, "Sirius::PSGI::Cleanup::handlers", ref, NULL);
    if (list && SvROK(list))
        sr_worker_flush(&s->worker);           /* the client need not wait for the handlers */
    for (UV i = 0; list && SvROK(list); i++) { /* a handler may push another one */
        SV *one = sirius_call_own(aTHX_ s, "Sirius::PSGI::Cleanup::handler", list, sv_2mortal(newSVuv(i)));
        if (!one)
            list = NULL;
        else if (!SvROK(one))
            return;
        else if (!sirius_call(aTHX_ s, *av_fetch((AV *)SvRV(one), 0, 1), ref, NULL))
            sirius_log(aTHX_ s, "a cleanup handler died", ERRSV);
    }
    if (!list)
        sirius_log(aTHX_ s, "psgix.cleanup.handlers is invalid", ERRSV);
}

/* True: the application wants this process to end. */
static bool cleanup(pTHX_ sirius *s, HV *env)
{
    if (sirius_env_nothing_left(aTHX_ env))
        return false;
    SV *ref = sv_2mortal(newRV_inc((SV *)env));
    run_handlers(aTHX_ s, ref);
    SV *commit = sirius_call_own(aTHX_ s, "Sirius::PSGI::Cleanup::commit", ref, NULL);
    if (!commit)
        sirius_log(aTHX_ s, "psgix.harakiri.commit is invalid", ERRSV);
    return commit && SvIOK(commit) && SvIVX(commit);
}

/*
 * --- what a request leaves behind ---
 *
 * What the application has returned and put into %env is freed outside, since a DESTROY may sleep or fork. It
 * is freed in an eval: DESTROY has its own, but closing a handle has none. A layer written in Perl may die
 * there, or a signal handler while perl waits for the program behind a pipe.
 */

enum { RELEASE_TRIES = 100 }; /* an exception may bring another object whose freeing fails */

static CV *releaser;

XS(sirius_xs_release);
XS(sirius_xs_release)
{
    dXSARGS;
    sirius *s = XSANY.any_ptr;
    sirius_turn *t = &s->turn;
    SSize_t floor = PL_tmps_floor;
    PERL_UNUSED_VAR(items);
    if (t->io.glob)
        sirius_socket_drop(aTHX_ s);
    PL_tmps_floor = t->temporaries;
    FREETMPS;
    PL_tmps_floor = floor;
    HV *alone = t->env.alone;
    t->env.alone = NULL;
    SvREFCNT_dec((SV *)alone);
    if (t->env.pooled && t->env.giving_back) {
        envpool_forget(aTHX_ t->env.pooled);
    } else if (t->env.pooled) {
        t->env.giving_back = true;
        envpool_give_back(aTHX_ t->env.pooled, t->env.untouched);
    }
    XSRETURN_YES;
}

void sirius_serve_boot(pTHX)
{
    releaser = newXS(NULL, sirius_xs_release, __FILE__);
}

/* Whatever has died was already removed, so each try gets further. */
static __attribute__((noinline)) void release(pTHX_ sirius *s)
{
    CvXSUBANY(releaser).any_ptr = s;
    for (int tries = 1; !sirius_call(aTHX_ s, (SV *)releaser, &PL_sv_undef, NULL); tries++) {
        sirius_log(aTHX_ s, "a destructor died after the request", ERRSV);
        if (tries >= RELEASE_TRIES)
            PL_tmps_ix = s->turn.temporaries; /* gives up: the rest is never freed */
    }
}

sirius_app sirius_app_of(pTHX_ SV *code)
{
    bool plain = SIRIUS_FREES_TEMPORARIES && !SvGMAGICAL(code) && SvROK(code) && !SvOBJECT(SvRV(code)) &&
                 SvTYPE(SvRV(code)) == SVt_PVCV && !CvISXSUB((CV *)SvRV(code));
    PERL_UNUSED_CONTEXT;
    return (sirius_app){code, plain};
}

bool sirius_serve_one(pTHX_ sirius *s, const sirius_app *app)
{
    bool harakiri = false;
    ENTER;
    SAVETMPS;
    s->turn = (sirius_turn){.serial = s->turn.serial + 1,
                            .site = &s->site[s->worker.request.slot->listener],
                            .open = true,
                            .temporaries = PL_tmps_floor};
    SV *ref = sirius_env_make(aTHX_ s, &s->worker.request);
    if (s->worker.request.slot->forwarded)
        sirius_env_forwarded(aTHX_ s->turn.env.hv, &s->worker.request);
    answer(aTHX_ s, sirius_call(aTHX_ s, app->code, ref, NULL));
    envpool_env *pooled = s->turn.env.pooled;
    bool untouched = s->turn.env.untouched = pooled && envpool_untouched(aTHX_ pooled);
    sirius_finish(aTHX_ s, false);
    bool inert = untouched && s->turn.inert && app->plain && envpool_ref_intact(pooled);
    if (!untouched)
        harakiri = cleanup(aTHX_ s, s->turn.env.hv);
    s->turn.env.hv = NULL;
    if (!inert)
        release(aTHX_ s);
    FREETMPS;
    LEAVE;
    if (inert)
        envpool_give_back(aTHX_ pooled, untouched);
    if (sirius_forked(s)) /* a fork that nothing above has caught came back */
        my_exit(0);
    return harakiri;
}
