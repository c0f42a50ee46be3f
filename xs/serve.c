/*
 * serve: the loop of a worker: next request, call the application, hand the response over.
 */
#include "base/clock.h"
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
    return s && s->turn.conn && s->turn.serial == serial ? s : NULL;
}

/* --- the helm --- */

bool sirius_helm_take(sirius *s)
{
    if (wire_is_edge(s)) {
        bool was = s->inside;
        s->inside = 1;
        return !was;
    }
    if (s->engine->helm_held)
        return false;
    sr_engine_return(s->engine);
    return true;
}

void sirius_helm_leave(sirius *s, bool taken)
{
    if (!taken)
        return;
    if (wire_is_edge(s))
        s->inside = 0;
    else
        sr_engine_lend(s->engine);
}

/* --- application code --- */

/* Before 5.24 perl left the temporaries of a sub to its caller. A copy of %env among them would still hold psgix.io. */
enum { FREES_TEMPORARIES = PERL_VERSION >= 24 };

SV *sirius_call(pTHX_ sirius *s, SV *code, SV *arg1, SV *arg2)
{
    bool held = wire_is_edge(s) ? s->inside : s->engine->helm_held;
    sirius_helm_leave(s, held);
    dSP;
    if (!FREES_TEMPORARIES) {
        ENTER;
        SAVETMPS;
    }
    PUSHSTACKi(PERLSI_REQUIRE); /* a stack of its own: last, next and goto find no loop or label outside */
    PUSHMARK(SP);
    XPUSHs(arg1);
    if (arg2)
        XPUSHs(arg2);
    PUTBACK;
    SV *hold = NULL;
    int n = call_sv(code, G_SCALAR | G_EVAL);
    SPAGAIN;
    SV *result = n == 1 ? POPs : NULL;
    PUTBACK;
    POPSTACK;
    if (SvROK(ERRSV) || SvTRUE_nomg(ERRSV)) { /* an object may be false, or die when it is asked */
        result = NULL;
        if (SvROK(ERRSV) && !SvGMAGICAL(ERRSV)) /* the next call empties $@ outside of its eval */
            hold = newSVsv(ERRSV);
    }
    if (!FREES_TEMPORARIES) {
        SvREFCNT_inc(result);
        FREETMPS;
        LEAVE;
        sv_2mortal(result);
    }
    if (hold)
        sv_2mortal(hold);
    if (wire_forked(s)) /* a child that the application forked came back: it must not serve */
        my_exit(0);
    if (held)
        sirius_helm_take(s);
    return result;
}

/* A sub of ours that looks at what the application has made. NULL: that died, $@. */
static SV *call_own(pTHX_ sirius *s, const char *name, SV *arg1, SV *arg2)
{
    return sirius_call(aTHX_ s, sv_2mortal(newRV_inc((SV *)get_cv(name, GV_ADD))), arg1, arg2);
}

/* An exception as text; its overload is application code and may die as well. A mortal. */
static SV *error_text(pTHX_ sirius *s, SV *error)
{
    SV *copy = SvGMAGICAL(error) ? error : sv_2mortal(newSVsv(error));
    if (SvGMAGICAL(copy) || (SvROK(copy) && SvAMAGIC(copy)))
        copy = call_own(aTHX_ s, "Sirius::Response::text", copy, NULL);
    return copy ? copy : sv_2mortal(newSVpvs("an exception that can't be made text"));
}

/* Escaped as in the access log: the bytes of a client must not speak to a terminal. */
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
    /* Who reads STDERR may stand still: then this thread does, but not the companion */
    bool held = !wire_is_edge(s) && s->engine->helm_held;
    if (held)
        sr_engine_lend(s->engine);
    s->logging = 1;
    sirius_log_put(aTHX_ SvPVX(line), SvCUR(line), level);
    s->logging = 0;
    if (held)
        sr_engine_return(s->engine);
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
    else if (t->phase == SIRIUS_UNANSWERED && !sirius_socket_taken(aTHX_ s))
        sirius_fail(aTHX_ s, "the application returned without calling the responder", NULL);
    else if (t->phase == SIRIUS_STREAMING)
        sirius_fail(aTHX_ s, "the application returned without closing the writer", NULL);
}

void sirius_finish(pTHX_ sirius *s)
{
    sirius_turn *t = &s->turn;
    sr_conn *c = t->conn;
    if (!c) /* a responder or a writer has done it */
        return;
    /* HEAD, or the last byte of its Content-Length: a proxy sends the next request, which must not meet a close */
    if ((t->phase == SIRIUS_STREAMING || t->phase == SIRIUS_BROKEN) && sirius_complete(t))
        sirius_answered(t);
    t->conn = NULL;
    if (s->log && s->engine)
        sirius_accesslog_offer(aTHX_ s, c);
    if (c->borrowed) { /* bytes read ahead are the application's now, and so are those that come */
        sr_buffer_reset(&c->in);
        c->keep_alive = false;
    }
    if (t->phase == SIRIUS_ANSWERED && t->left) {
        c->keep_alive = false;
        c->broken = true;
    }
    wire_finish(s, c);
}

/* The handlers can only be found by code of the application when they, or %env, are tied: it dies in an eval, then. */
static void run_handlers(pTHX_ sirius *s, SV *ref)
{
    SV *list = call_own(aTHX_ s, "Sirius::Cleanup::handlers", ref, NULL);
    if (list && SvROK(list) && wire_is_edge(s))
        sr_worker_flush(&s->worker);           /* the client need not wait for them */
    for (UV i = 0; list && SvROK(list); i++) { /* a handler may push another */
        SV *one = call_own(aTHX_ s, "Sirius::Cleanup::handler", list, sv_2mortal(newSVuv(i)));
        if (!one)
            list = NULL;
        else if (!SvROK(one))
            return;
        else if (!sirius_call(aTHX_ s, *av_fetch((AV *)SvRV(one), 0, 1), ref, NULL))
            sirius_log(aTHX_ s, "a cleanup handler died", ERRSV);
    }
    if (!list)
        sirius_log(aTHX_ s, "psgix.cleanup.handlers is not usable", ERRSV);
}

static void cleanup(pTHX_ sirius *s, HV *env)
{
    if (sirius_env_nothing_left(aTHX_ env))
        return;
    SV *ref = sv_2mortal(newRV_inc((SV *)env));
    run_handlers(aTHX_ s, ref);
    SV *commit = call_own(aTHX_ s, "Sirius::Cleanup::commit", ref, NULL);
    if (!commit) {
        sirius_log(aTHX_ s, "psgix.harakiri.commit is not usable", ERRSV);
    } else if (SvIOK(commit) && SvIVX(commit)) {
        bool taken = sirius_helm_take(s);
        s->leave = true;
        if (!wire_is_edge(s))
            sr_engine_retire(s->engine);
        sirius_helm_leave(s, taken);
    }
}

/*
 * --- what a request leaves behind ---
 *
 * What the application has returned and what it has put into %env is freed without the helm: a DESTROY may sleep or fork. And in an
 * eval: DESTROY has one of its own, but the close of a handle that goes has none, and there a layer of Perl may die, or the
 * handler of a signal while perl waits for the program behind a pipe.
 */

enum { RELEASE_TRIES = 100 }; /* an exception may bring along the next that can't be freed */

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

/* Whatever dies is out of the way then: so each try comes further. */
static __attribute__((noinline)) void release(pTHX_ sirius *s)
{
    CvXSUBANY(releaser).any_ptr = s;
    for (int tries = 1; !sirius_call(aTHX_ s, (SV *)releaser, &PL_sv_undef, NULL); tries++) {
        sirius_log(aTHX_ s, "what the request left behind died as it was freed", ERRSV);
        if (tries >= RELEASE_TRIES)
            PL_tmps_ix = s->turn.temporaries; /* never freed */
    }
}

/* Where nothing that is left can run code, the helm is kept. */
static inline __attribute__((always_inline)) void serve_one(pTHX_ sirius *s, const sr_task *task, SV *app)
{
    ENTER;
    SAVETMPS;
    s->turn = (sirius_turn){.serial = ++s->serial, .conn = task->conn, .temporaries = PL_tmps_floor};
    SV *ref = sirius_env(aTHX_ s, task);
    if (task->forwarded)
        sirius_env_forwarded(aTHX_ s->turn.env, task);
    answer(aTHX_ s, sirius_call(aTHX_ s, app, ref, NULL));
    s->returned = true;
    envpool_env *pooled = s->turn.pooled;
    bool untouched = s->turn.untouched = pooled && envpool_untouched(aTHX_ pooled);
    sirius_finish(aTHX_ s);
    bool inert = untouched && s->turn.inert && envpool_ref_intact(pooled);
    if (!inert)
        sirius_helm_leave(s, wire_is_edge(s) ? s->inside : s->engine->helm_held);
    if (!untouched)
        cleanup(aTHX_ s, s->turn.env);
    s->turn.env = NULL;
    if (!inert)
        release(aTHX_ s);
    FREETMPS;
    LEAVE;
    if (inert)
        envpool_give_back(aTHX_ pooled, untouched);
    if (wire_forked(s)) /* it came back from where none was expected */
        my_exit(0);
}

void sirius_serve_one(pTHX_ sirius *s, const sr_task *task, SV *app)
{
    serve_one(aTHX_ s, task, app);
}

static const char *soon(sirius *s)
{
    static char text[64];
    sr_engine *e = s->engine;
    if (e->soon == SR_REASON_RSS)
        snprintf(text, sizeof text, "soon max-rss (%llu MiB)", (unsigned long long)(e->rss >> 20));
    else
        snprintf(text, sizeof text, "soon max-requests (%llu requests)", (unsigned long long)e->served);
    return text;
}

/* Why no more requests will come. */
static const char *ended(const sirius *s)
{
    const sr_engine *e = s->engine;
    if (e->drain)
        return e->drain == SR_DRAIN_NOW ? "stopped" : "drained";
    if (s->leave)
        return "harakiri";
    return e->reason == SR_REASON_OVERDUE ? "timeout"
           : e->reason == SR_REASON_RSS   ? "max-rss"
                                          : "max-requests";
}

const char *sirius_serve(pTHX_ sirius *s, SV *app)
{
    sr_task task;
    s->plain_app = FREES_TEMPORARIES && !SvGMAGICAL(app) && SvROK(app) && !SvOBJECT(SvRV(app)) &&
                   SvTYPE(SvRV(app)) == SVt_PVCV && !CvISXSUB((CV *)SvRV(app));
    if (wire_is_edge(s))
        return sirius_work(aTHX_ s, app);
    sirius_current = s;
    for (;;) {
        if (PL_sig_pending)
            sirius_signals(aTHX_ s);
        if (!s->retiring && sr_engine_draining(s->engine) && s->engine->drain != SR_DRAIN_NOW) {
            s->retiring = true;
            sirius_current = NULL;
            return "retiring";
        }
        switch (sr_engine_next(s->engine, &task)) {
        case SR_NEXT_REQUEST:
            serve_one(aTHX_ s, &task, app);
            break;
        case SR_NEXT_WAKE:
            break;
        case SR_NEXT_SOON:
            sr_engine_lend(s->engine);
            sirius_current = NULL;
            return soon(s);
        case SR_NEXT_DONE:
            sr_engine_lend(s->engine);
            sirius_current = NULL;
            return ended(s);
        }
    }
}

void sirius_abandon(pTHX_ sirius *s, const char *why)
{
    if (wire_forked(s) || !sirius_current)
        return;
    if (wire_is_edge(s)) {
        sirius_work_abandon(aTHX_ s, why);
        return;
    }
    sirius_helm_take(s);
    if (s->turn.conn) {
        sirius_fail(aTHX_ s, why, NULL);
        sirius_finish(aTHX_ s);
    }
    sr_engine_evacuate(s->engine, 2 * SR_SECOND);
    sr_engine_lend(s->engine);
    sirius_current = NULL;
}
