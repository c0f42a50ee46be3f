/* engine: a Sirius::Engine from the hash that Sirius::Worker hands over, and its end. */
#include "envpool.h"

#include "base/clock.h"
#include "core/companion.h"

#include <pthread.h>
#include <signal.h>

static SV *conf(pTHX_ HV *hv, const char *key)
{
    SV **svp = hv_fetch(hv, key, (I32)strlen(key), 0);
    if (!svp || !SvOK(*svp))
        croak("Sirius::Engine->new: %s is missing", key);
    return *svp;
}

static AV *conf_array(pTHX_ SV *sv, const char *what)
{
    if (!SvROK(sv) || SvTYPE(SvRV(sv)) != SVt_PVAV)
        croak("Sirius::Engine->new: %s", what);
    return (AV *)SvRV(sv);
}

static int64_t nanoseconds(pTHX_ HV *hv, const char *key)
{
    return (int64_t)(SvNV(conf(aTHX_ hv, key)) * 1e9);
}
static UV number(pTHX_ HV *hv, const char *key)
{
    return SvUV(conf(aTHX_ hv, key));
}

static sr_cidrs networks(pTHX_ HV *hv, const char *key)
{
    sr_cidrs list = {0};
    sr_bytes wrong;
    STRLEN len;
    const char *text = SvPV(conf(aTHX_ hv, key), len);
    if (len && !sr_cidrs_parse(&list, sr_bytes_of(text, len), &wrong))
        croak("Sirius::Engine->new: %s: %.*s", key, (int)wrong.len, wrong.at);
    return list;
}

static sr_config config_read(pTHX_ HV *hv, sirius *s)
{
    STRLEN len;
    s->tmpdir = newSVsv(conf(aTHX_ hv, "tmpdir"));
    s->server = newSVsv(conf(aTHX_ hv, "server"));
    const char *server = SvPV(s->server, len);
    return (sr_config){
        .request = {.line = (uint32_t)number(aTHX_ hv, "max_request_line"),
                    .head = (uint32_t)number(aTHX_ hv, "max_header_bytes"),
                    .fields = (uint32_t)number(aTHX_ hv, "max_header_fields"),
                    .underscores = SvTRUE(conf(aTHX_ hv, "underscores"))},
        .max_body = number(aTHX_ hv, "max_body"),
        .body_memory = number(aTHX_ hv, "body_memory"),
        .header_ns = nanoseconds(aTHX_ hv, "header_timeout"),
        .idle_ns = nanoseconds(aTHX_ hv, "keepalive_timeout"),
        .body_ns = nanoseconds(aTHX_ hv, "body_timeout"),
        .body_rate = (uint32_t)number(aTHX_ hv, "body_rate"),
        .write_ns = nanoseconds(aTHX_ hv, "write_timeout"),
        .linger_ns = 5 * SR_SECOND, /* what nginx waits by default (lingering_timeout) */
        .max_keepalive_reqs = (uint32_t)number(aTHX_ hv, "max_keepalive_reqs"),
        .keepalive = SvTRUE(conf(aTHX_ hv, "keepalive")),
        .max_requests = number(aTHX_ hv, "max_requests"),
        .soon_requests = number(aTHX_ hv, "soon_requests"),
        .max_rss = number(aTHX_ hv, "max_rss"),
        .max_connections = number(aTHX_ hv, "max_connections"),
        .max_queue = number(aTHX_ hv, "max_queue"),
        .queue_ns = nanoseconds(aTHX_ hv, "queue_timeout"),
        .request_ns = nanoseconds(aTHX_ hv, "request_timeout"),
        .stream_ns = nanoseconds(aTHX_ hv, "stream_timeout"),
        .report_fd = (int)SvIV(conf(aTHX_ hv, "report_fd")),
        .trusted_underscores = SvTRUE(conf(aTHX_ hv, "trusted_underscores")),
        .trusted = networks(aTHX_ hv, "trust_proxy"),
        .forwarded = SvTRUE(conf(aTHX_ hv, "forwarded")) ? SR_FORWARDED_RFC7239 : SR_FORWARDED_X,
        .x_forwarded_host = SvTRUE(conf(aTHX_ hv, "x_forwarded_host")),
        .proxy_protocol = SvTRUE(conf(aTHX_ hv, "proxy_protocol")),
        .sheds_unfinished = SvTRUE(conf(aTHX_ hv, "sheds_unfinished")),
        .companion = SvTRUE(conf(aTHX_ hv, "companion")),
        .tmpdir = SvPV_nolen(s->tmpdir),
        .server = sr_bytes_of(server, len),
    };
}

static void listen_all(pTHX_ HV *hv, sirius *s)
{
    AV *list = conf_array(aTHX_ conf(aTHX_ hv, "listeners"), "listeners is no array");
    bool multiprocess = SvTRUE(conf(aTHX_ hv, "multiprocess"));
    for (SSize_t i = 0; i <= av_len(list); i++) {
        AV *row = conf_array(aTHX_ * av_fetch(list, i, 1), "a listener is no array");
        if (av_len(row) != 3)
            croak("Sirius::Engine->new: a listener is not [fd, name, port, is_unix]");
        SV **field = AvARRAY(row);
        if (i >= SR_LISTENERS_MAX ||
            (s->engine && sr_engine_listen(s->engine, (int)SvIV(field[0]), SvTRUE(field[3])) != 0))
            croak("Sirius::Engine->new: more than %d listeners", SR_LISTENERS_MAX);
        s->site[i] = sirius_site_new(aTHX_ SvPV_nolen(field[1]), SvPV_nolen(field[2]), multiprocess);
        s->site[i].socket = (HV *)SvREFCNT_inc((SV *)sirius_socket_class(aTHX_(int) SvIV(field[0])));
    }
}

/* A child that the application forks must keep its hands off its parent's connections. */
static void about_to_fork(void)
{
    if (!sirius_current)
        return;
    sirius_current->turn.forked = true;
    if (!sirius_current->engine && !sirius_current->forked) {
        dTHX;
        sirius_socket_forks(aTHX_ sirius_current);
    }
    if (sirius_current->engine && sirius_current->engine->scoreboard)
        sirius_current->engine->scoreboard->app_forks = 1;
}

/*
 * And it ends by a signal as any other program does: the worker's handlers would have it wait for requests that never end.
 * Those of the application stay. Perl still has the worker's subs in %SIG; they know of it (Sirius::Worker::in_child).
 */
static void plain_signals(void)
{
    static const int deadly[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    dTHX;
#ifdef MULTIPLICITY
    if (!my_perl) /* forked by a thread that is not perl's */
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
    if (sirius_current->engine)
        sirius_current->engine->forked = true;
    sirius_current->forked = true;
    plain_signals();
}

void sirius_free(pTHX_ sirius *s)
{
    if (sirius_current == s)
        sirius_current = NULL;
    for (int i = 0; s->pool && i < ENVPOOL_SHAPES; i++)
        envpool_forget(aTHX_ & s->pool[i]);
    for (int i = 0; i < SR_LISTENERS_MAX; i++) {
        SvREFCNT_dec(s->site[i].name);
        SvREFCNT_dec(s->site[i].port);
        SvREFCNT_dec(s->site[i].multiprocess);
        SvREFCNT_dec((SV *)s->site[i].socket);
    }
    Safefree(s->pool);
    sirius_work_close(aTHX_ s);
    sr_engine_free(s->engine);
    sirius_accesslog_free(aTHX_ s);
    SvREFCNT_dec(s->scoreboard);
    SvREFCNT_dec(s->tmpdir);
    SvREFCNT_dec(s->server);
    sr_buffer_free(&s->head);
    free(s->iov);
    Safefree(s);
}

static void access_log(pTHX_ HV *hv, sirius *s)
{
    SV **log = hv_fetchs(hv, "access_log", 0);
    if (!log || !SvROK(*log) || SvTYPE(SvRV(*log)) != SVt_PVHV)
        return;
    if (s->engine)
        sirius_accesslog_new(aTHX_ s, (HV *)SvRV(*log));
    else
        sirius_accesslog_view(aTHX_ s, (HV *)SvRV(*log));
}

/* Connections of its own. */
static void engine_open(pTHX_ HV *hv, sirius *s, const sr_config *config, sr_scoreboard *scoreboard,
                        uint32_t slot)
{
    int err = sr_engine_new(&s->engine, config, scoreboard, slot, (int)SvIV(conf(aTHX_ hv, "control_fd")));
    if (err)
        croak("Sirius::Engine->new: %s", Strerror(err));
    s->row = s->engine->row;
    s->engine->interrupted = sirius_interrupted;
    access_log(aTHX_ hv, s);
    listen_all(aTHX_ hv, s);
    sr_engine_exchange(s->engine, (int)SvIV(conf(aTHX_ hv, "exchange_give")),
                       (int)SvIV(conf(aTHX_ hv, "exchange_take")));
    if (config->companion && (err = sr_companion_start(s->engine)) != 0)
        croak("Sirius::Engine->new: no thread: %s", Strerror(err));
}

SV *sirius_new(pTHX_ HV *hv)
{
    static bool watching_forks;
    sirius *s;
    Newxz(s, 1, sirius);
#ifdef MULTIPLICITY
    s->owner = aTHX;
#endif
    SV *self =
        sv_setref_pv(sv_newmortal(), "Sirius::Engine", s); /* owns s from here on, also when we croak */
    Newxz(s->pool, ENVPOOL_SHAPES, envpool_env);
    s->edge = (int)SvIV(conf(aTHX_ hv, "edge"));
    sr_config config = config_read(aTHX_ hv, s);
    SV **board = hv_fetchs(hv, "scoreboard", 0);
    sr_scoreboard *scoreboard = NULL;
    if (board && SvROK(*board) && sv_derived_from(*board, "Sirius::Scoreboard"))
        scoreboard = INT2PTR(sr_scoreboard *, SvIV(SvRV(*board)));
    if (scoreboard)
        s->scoreboard = SvREFCNT_inc(SvRV(*board)); /* global destruction frees in any order */
    uint32_t slot = (uint32_t)number(aTHX_ hv, "slot");
    SV **sleepers = hv_fetchs(hv, "sleepers", 0);
    if (sleepers && SvOK(*sleepers)) {
        s->row = scoreboard && slot < scoreboard->slots ? &scoreboard->rows[slot] : &s->no_row;
        s->board = scoreboard;
        s->max_requests = config.max_requests;
        s->soon_requests = config.soon_requests;
        s->max_rss = config.max_rss;
        s->resident.fd = -1;
        access_log(aTHX_ hv, s);
        listen_all(aTHX_ hv, s);
        sirius_work_open(aTHX_ s, (int)SvIV(*sleepers), slot);
    } else {
        engine_open(aTHX_ hv, s, &config, scoreboard, slot);
    }
    if (!watching_forks)
        pthread_atfork(about_to_fork, NULL, forked_child);
    watching_forks = true;
    return self;
}
