/* serve: serves one request: makes %env, calls the application, sends the response. */
#include "envpool.h"
#include "http/logtext.h"
#include "wire.h"

#include <unistd.h>

sirius *sirius_current;

sirius *sirius_own(pTHX)
{
    PERL_UNUSED_CONTEXT;
#ifdef MULTIPLICITY
    if (sirius_current && sirius_current->owner != aTHX)
        return NULL;
#endif
    return sirius_current;
}

sirius *sirius_alive(pTHX_ UV serial)
{
    sirius *s = sirius_own(aTHX);
    return s && s->turn.request && s->turn.serial == serial ? s : NULL;
}

/* --- application code --- */

SV *sirius_call(pTHX_ sirius *s, SV *code, SV *arg1, SV *arg2)
{
    sig_atomic_t was_inside = s->inside;
    const void *outer = s->outer, *frame = s->frame;
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
    s->outer = PL_top_env;
    s->frame = PL_curstackinfo;
    /* the order matters: a handler must see where the call begins before it finds us outside */
    atomic_signal_fence(memory_order_seq_cst);
    s->inside = 0;
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
    s->inside = was_inside;
    atomic_signal_fence(memory_order_seq_cst);
    s->outer = outer;
    s->frame = frame;
    return result;
}

/* Calls a sub of the server that looks at what the application has made. NULL: it died, see $@. */
static SV *call_own(pTHX_ sirius *s, const char *name, SV *arg1, SV *arg2)
{
    return sirius_call(aTHX_ s, sv_2mortal(newRV_inc((SV *)get_cv(name, GV_ADD))), arg1, arg2);
}

/* The text of an exception. Its overload is code of the application, and may die as well. Mortal. */
static SV *error_text(pTHX_ sirius *s, SV *error)
{
    SV *copy = SvGMAGICAL(error) ? error : sv_2mortal(newSVsv(error));
    if (SvGMAGICAL(copy) || (SvROK(copy) && SvAMAGIC(copy)))
        copy = call_own(aTHX_ s, "Sirius::PSGI::Response::text", copy, NULL);
    return copy ? copy : sv_2mortal(newSVpvs("an exception that cannot be converted to text"));
}

/* Escaped as in the access log: a client must not send control characters to an operator's terminal. */
static void add_request(pTHX_ SV *line, SV *method, SV *uri)
{
    sr_buffer text;
    sr_buffer_init(&text);
    if (sr_logtext_add(&text, sr_bytes_of(SvPVX(method), SvCUR(method))) && sr_buffer_add(&text, " ", 1) &&
        sr_logtext_add(&text, sr_bytes_of(SvPVX(uri), SvCUR(uri))) && sr_buffer_add(&text, ": ", 2))
        sv_catpvn(line, sr_buffer_at(&text), sr_buffer_len(&text));
    sr_buffer_free(&text);
}

static void log_line(pTHX_ sirius *s, const char *level, const char *what, SV *error)
{
    if (error)
        error = error_text(aTHX_ s, error);
    SV *line = sv_2mortal(newSVpvf("[sirius %d] %s: ", (int)getpid(), level));
    if (s->turn.env) {
        SV **method = sirius_env_fetch(aTHX_ s->turn.env, "REQUEST_METHOD");
        SV **uri = sirius_env_fetch(aTHX_ s->turn.env, "REQUEST_URI");
        if (method && uri && SvPOK(*method) && SvPOK(*uri))
            add_request(aTHX_ line, *method, *uri);
    }
    sv_catpv(line, what);
    if (error) {
        STRLEN len;
        const char *text = SvPV(error, len);
        sv_catpvs(line, ": ");
        sv_catpvn(line, text, len);
    }
    if (*(SvEND(line) - 1) != '\n')
        sv_catpvs(line, "\n");
    s->logging = 1;
    sirius_log_put(aTHX_ SvPVX(line), SvCUR(line), level);
    s->logging = 0;
}

void sirius_log(pTHX_ sirius *s, const char *what, SV *error)
{
    log_line(aTHX_ s, "error", what, error);
}

void sirius_warn(pTHX_ sirius *s, const char *what)
{
    log_line(aTHX_ s, "warn", what, NULL);
}

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
    else if (t->phase == SIRIUS_UNANSWERED && !t->request->borrowed)
        sirius_fail(aTHX_ s, "the application returned without calling the responder", NULL);
    else if (t->phase == SIRIUS_STREAMING)
        sirius_fail(aTHX_ s, "the application returned without closing the writer", NULL);
}

void sirius_finish(pTHX_ sirius *s)
{
    sirius_turn *t = &s->turn;
    PERL_UNUSED_CONTEXT;
    if (!t->request) /* the responder or the writer has done it */
        return;
    /*
     * complete after all: HEAD, or the last byte of its Content-Length. The client may send the next request
     * already, which must not meet a close.
     */
    if ((t->phase == SIRIUS_STREAMING || t->phase == SIRIUS_BROKEN) && sirius_complete(t))
        t->phase = SIRIUS_ANSWERED;
    wire_finish(s);
    t->request = NULL;
}

/*
 * Runs the cleanup handlers. If they or %env are tied, finding them runs code of the application, so that is
 * done in an eval.
 */
static void run_handlers(pTHX_ sirius *s, SV *ref)
{
    SV *list = call_own(aTHX_ s, "Sirius::PSGI::Cleanup::handlers", ref, NULL);
    if (list && SvROK(list))
        sr_worker_flush(&s->worker);           /* the client need not wait for the handlers */
    for (UV i = 0; list && SvROK(list); i++) { /* a handler may push another one */
        SV *one = call_own(aTHX_ s, "Sirius::PSGI::Cleanup::handler", list, sv_2mortal(newSVuv(i)));
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

static void cleanup(pTHX_ sirius *s, HV *env)
{
    if (sirius_env_nothing_left(aTHX_ env))
        return;
    SV *ref = sv_2mortal(newRV_inc((SV *)env));
    run_handlers(aTHX_ s, ref);
    SV *commit = call_own(aTHX_ s, "Sirius::PSGI::Cleanup::commit", ref, NULL);
    if (!commit) {
        sirius_log(aTHX_ s, "psgix.harakiri.commit is invalid", ERRSV);
    } else if (SvIOK(commit) && SvIVX(commit)) {
        s->leave = true;
    }
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
    if (t->io)
        sirius_socket_drop(aTHX_ s);
    PL_tmps_floor = t->temporaries;
    FREETMPS;
    PL_tmps_floor = floor;
    HV *alone = t->alone;
    t->alone = NULL;
    SvREFCNT_dec((SV *)alone);
    if (t->pooled && t->giving_back) {
        envpool_forget(aTHX_ t->pooled);
    } else if (t->pooled) {
        t->giving_back = true;
        envpool_give_back(aTHX_ t->pooled, t->untouched);
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

void sirius_serve_one(pTHX_ sirius *s, SV *app)
{
    ENTER;
    SAVETMPS;
    s->turn = (sirius_turn){.serial = ++s->serial, .request = &s->request, .temporaries = PL_tmps_floor};
    SV *ref = sirius_env(aTHX_ s, &s->request);
    if (s->request.forwarded)
        sirius_env_forwarded(aTHX_ s->turn.env, &s->request);
    answer(aTHX_ s, sirius_call(aTHX_ s, app, ref, NULL));
    s->returned = true;
    envpool_env *pooled = s->turn.pooled;
    bool untouched = s->turn.untouched = pooled && envpool_untouched(aTHX_ pooled);
    sirius_finish(aTHX_ s);
    bool inert = untouched && s->turn.inert && envpool_ref_intact(pooled);
    if (!untouched)
        cleanup(aTHX_ s, s->turn.env);
    s->turn.env = NULL;
    if (!inert)
        release(aTHX_ s);
    FREETMPS;
    LEAVE;
    if (inert)
        envpool_give_back(aTHX_ pooled, untouched);
    if (sirius_forked(s)) /* a fork that nothing above has caught came back */
        my_exit(0);
}
