/* requestloop: makes a Sirius::Worker::RequestLoop from a hash of Sirius::Worker, and frees it. */
#include "requestloop.h"

#include "accesslog.h"
#include "env.h"
#include "envpool.h"
#include "hold.h"
#include "sirius.h"
#include "socket.h"
#include "turn.h"
#include "work.h"

#include <pthread.h>
#include <signal.h>

static SV *conf(pTHX_ HV *hv, const char *key)
{
    SV **svp = hv_fetch(hv, key, (I32)strlen(key), 0);
    if (!svp || !SvOK(*svp))
        croak("Sirius::Worker::RequestLoop->new: %s is missing", key);
    return *svp;
}

static AV *conf_array(pTHX_ SV *sv, const char *what)
{
    if (!SvROK(sv) || SvTYPE(SvRV(sv)) != SVt_PVAV)
        croak("Sirius::Worker::RequestLoop->new: %s", what);
    return (AV *)SvRV(sv);
}

static UV number(pTHX_ HV *hv, const char *key)
{
    return SvUV(conf(aTHX_ hv, key));
}

static void listen_all(pTHX_ HV *hv, sirius *s)
{
    AV *list = conf_array(aTHX_ conf(aTHX_ hv, "listeners"), "listeners is not an array");
    bool multiprocess = SvTRUE(conf(aTHX_ hv, "multiprocess"));
    for (SSize_t i = 0; i <= av_len(list); i++) {
        AV *row = conf_array(aTHX_ * av_fetch(list, i, 1), "a listener is not an array");
        if (av_len(row) != 3)
            croak("Sirius::Worker::RequestLoop->new: a listener is not [family, name, port, is_tls]");
        SV **field = AvARRAY(row);
        if (i >= SIRIUS_LISTENERS_MAX)
            croak("Sirius::Worker::RequestLoop->new: more than %d listeners", SIRIUS_LISTENERS_MAX);
        s->site[i] = sirius_site_new(aTHX_(int) SvIV(field[0]), SvPV_nolen(field[1]), SvPV_nolen(field[2]),
                                     SvTRUE(field[3]), multiprocess);
    }
}

static void about_to_fork(void)
{
    if (!sirius_current || sirius_forked(sirius_current))
        return;
    if (!pthread_equal(pthread_self(), sirius_current->thread)) /* may be a thread without a perl */
        return;
    dTHX;
    sirius_socket_forks(aTHX_ sirius_current);
}

/*
 * A child of the application ends by a signal as any other program does: with the worker's handlers it would
 * wait for requests that never end. Handlers of the application stay. Perl still has the worker's subs in
 * %SIG; they check for this (Sirius::Worker::in_child).
 */
static void plain_signals(void)
{
    static const int deadly[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    dTHX;
#ifdef MULTIPLICITY
    if (!my_perl) /* a thread without a perl has forked */
        return;
#endif
    for (size_t i = 0; PL_psig_ptr && i < sizeof deadly / sizeof *deadly; i++) {
        SV *handler = PL_psig_ptr[deadly[i]];
        HV *stash = handler && SvROK(handler) && SvTYPE(SvRV(handler)) == SVt_PVCV
                        ? CvSTASH((CV *)SvRV(handler))
                        : NULL;
        const char *package = stash ? HvNAME_get(stash) : NULL;
        if (package && strnEQ(package, "Sirius::", 8))
            signal(deadly[i], SIG_DFL);
    }
}

static void forked_child(void)
{
    if (!sirius_current)
        return;
    sr_worker_forked(&sirius_current->worker);
    plain_signals();
}

void sirius_free(pTHX_ sirius *s)
{
    if (sirius_current == s)
        sirius_current = NULL;
    sirius_let_go(aTHX_ & s->inside);
    envpool_free(aTHX_ & s->pool);
    for (int i = 0; i < SIRIUS_LISTENERS_MAX; i++)
        sirius_site_free(aTHX_ & s->site[i]);
    sirius_work_close(aTHX_ s);
    sirius_ending_close(&s->ending);
    sirius_accesslog_free(aTHX_ s);
    sirius_row_close(aTHX_ & s->row);
    sirius_grip_free(s->grip);
    sr_buffer_free(&s->head);
    sirius_scratch_free(&s->scratch);
    free(s);
}

/* Without "hold", "hold_channel" is the only one that is held. */
static void hold_open(pTHX_ sirius *s, HV *hv)
{
    SV **hold = hv_fetchs(hv, "hold", 0), **only = hv_fetchs(hv, "hold_channel", 0);
    STRLEN len = 0;
    const char *channel = "";
    if (!hold || !SvTRUE(*hold)) {
        if (!only || !SvOK(*only))
            return;
        channel = SvPVbyte(*only, len);
    }
    if (!(s->grip = sirius_grip_new(sr_bytes_of(channel, len))))
        croak("Sirius::Worker::RequestLoop->new: out of memory");
}

SV *sirius_new(pTHX_ HV *hv)
{
    static bool watching_forks;
    sirius *s = aligned_alloc(_Alignof(sirius), sizeof *s); /* Newx aligns to 16 bytes */
    if (!s)
        croak("Sirius::Worker::RequestLoop->new: out of memory");
    memset(s, 0, sizeof *s);
    s->thread = pthread_self();
#ifdef MULTIPLICITY
    s->owner = aTHX;
#endif
    /* owns s from here on, also if the rest croaks */
    SV *self = sv_setref_pv(sv_newmortal(), "Sirius::Worker::RequestLoop", s);
    envpool_init(&s->pool);
    s->alone.edge = (int)SvIV(conf(aTHX_ hv, "edge"));
    SV **report = hv_fetchs(hv, "report", 0);
    s->memory.report = report && SvIOK(*report) ? (int)SvIV(*report) : -1;
    SV **board = hv_fetchs(hv, "scoreboard", 0), **log = hv_fetchs(hv, "access_log", 0);
    uint32_t row = (uint32_t)number(aTHX_ hv, "row");
    sirius_row_open(aTHX_ & s->row, board ? *board : NULL, row);
    UV max_requests = number(aTHX_ hv, "max_requests"), soon_requests = number(aTHX_ hv, "soon_requests");
    sirius_ending_open(&s->ending, max_requests, soon_requests, number(aTHX_ hv, "max_rss"));
    if (log && SvROK(*log) && SvTYPE(SvRV(*log)) == SVt_PVHV)
        sirius_accesslog_open(aTHX_ s, (HV *)SvRV(*log));
    hold_open(aTHX_ s, hv);
    listen_all(aTHX_ hv, s);
    sirius_work_open(aTHX_ s, (int)SvIV(conf(aTHX_ hv, "sleepers")), row,
                     (uint32_t)number(aTHX_ hv, "generation"));
    if (!watching_forks)
        pthread_atfork(about_to_fork, NULL, forked_child);
    watching_forks = true;
    return self;
}
