/*
 * accesslog: what a line of the access log knows of a request that the application has answered. The engine of this
 * process makes it, or the edge: that has the request and is told what is another in %env now.
 */
#include "sirius.h"

#include "envpool.h"
#include "http/logrequest.h"
#include "logformat.h"

#include "base/clock.h"

#include <fcntl.h>
#include <unistd.h>

struct sirius_accesslog {
    sirius_logscratch scratch;
    sirius_logview view;
    sr_logsource source;

    /* with an edge: */
    sr_logrequest request;
    sr_buffer run; /* share/reply.h */
    uint64_t id;
    char address[SR_PEER_TEXT_MAX];
};

static int copy_of(pTHX_ int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        croak("Sirius::Engine: the access log: %s", Strerror(errno));
    return copy;
}

/* What is looked up in %env, by the items of a format. */
static void view_open(pTHX_ sirius *s, SV *format)
{
    s->log_format = SvREFCNT_inc(SvRV(format));
    Newxz(s->log, 1, sirius_accesslog);
    s->log->view.scratch = &s->log->scratch;
    s->log->view.plain = true; /* the helm is held, or a reply is half made */
    s->log->source = (sr_logsource){.ctx = &s->log->view, .get = sirius_logview_get, .pid = (int)getpid()};
}

static sr_logformat *program(const sirius *s)
{
    const sirius_logformat *compiled = INT2PTR(sirius_logformat *, SvIVX(s->log_format));
    return compiled->program;
}

/* access_log => { fd, kind, priority, format, min_time, errors_only }: a sink with a copy of that descriptor. Croaks. */
static sr_sink *sink_of(pTHX_ HV *conf)
{
    static const char *const kinds[] = {"file", "pipe", "syslog"};
    SV **format = hv_fetchs(conf, "format", 0), **kind = hv_fetchs(conf, "kind", 0);
    SV **fd = hv_fetchs(conf, "fd", 0), **priority = hv_fetchs(conf, "priority", 0);
    if (!format || !SvROK(*format) || !sv_derived_from(*format, "Sirius::LogFormat") || !kind || !fd ||
        !hv_fetchs(conf, "min_time", 0) || !hv_fetchs(conf, "errors_only", 0))
        croak("Sirius::Engine->new: access_log is not whole");
    unsigned k = 0;
    while (k < 2 && strNE(SvPV_nolen(*kind), kinds[k]))
        k++;
    sr_sink *sink = sr_sink_new((sr_sink_kind)k, copy_of(aTHX_(int) SvIV(*fd)), SR_SINK_BATCH);
    if (!sink)
        croak("Sirius::Engine->new: access_log: %s", Strerror(errno));
    if (priority && SvOK(*priority))
        sr_sink_syslog(sink, (int)SvIV(*priority));
    return sink;
}

static int64_t min_ns(pTHX_ HV *conf)
{
    return (int64_t)(SvNV(*hv_fetchs(conf, "min_time", 0)) * 1e9);
}

void sirius_accesslog_new(pTHX_ sirius *s, HV *conf)
{
    sr_sink *sink = sink_of(aTHX_ conf);
    SV **format = hv_fetchs(conf, "format", 0), **errors = hv_fetchs(conf, "errors_only", 0);
    sr_accesslog *log = calloc(1, sizeof *log);
    if (!log) {
        sr_sink_free(sink);
        croak("Sirius::Engine->new: access_log: %s", Strerror(ENOMEM));
    }
    view_open(aTHX_ s, *format);
    *log = (sr_accesslog){
        .format = program(s),
        .sink = sink,
        .min_ns = min_ns(aTHX_ conf),
        .errors_only = SvTRUE(*errors),
    };
    int err = sr_engine_log(s->engine, log);
    if (err)
        croak("Sirius::Engine->new: access_log: %s", Strerror(err));
}

void sirius_accesslog_free(pTHX_ sirius *s)
{
    if (!s->log)
        return;
    sirius_logscratch_clear(&s->log->scratch);
    sr_logrequest_free(&s->log->request);
    sr_buffer_free(&s->log->run);
    Safefree(s->log);
    SvREFCNT_dec(s->log_format);
}

/* Of the request at hand; untouched: its %env is as the pool has made it, but for texts. */
static void view_env(pTHX_ sirius *s, bool untouched)
{
    sirius_logview *view = &s->log->view;
    PERL_UNUSED_CONTEXT;
#ifdef MULTIPLICITY
    view->my_perl = aTHX;
#endif
    view->env = s->turn.env;
    view->pooled = untouched ? s->turn.pooled : NULL;
    view->shape = view->pooled ? (unsigned)(view->pooled - s->pool) : 0;
}

void sirius_accesslog_offer(pTHX_ sirius *s, sr_conn *c)
{
    sirius_logview *view = &s->log->view;
    size_t head = c->head_bytes < sr_buffer_len(&s->head) ? c->head_bytes : sr_buffer_len(&s->head);
    view_env(aTHX_ s, s->turn.untouched);
    view->head = c->status && s->head.data ? sr_bytes_of(sr_buffer_at(&s->head), head) : sr_bytes_of("", 0);
    s->log->source.wall = c->ready_at + s->engine->wall_offset;
    sr_engine_log_offer(s->engine, c, &s->log->source);
}

void sirius_accesslog_to(pTHX_ sirius *s, int fd)
{
    if (!s->log || !s->engine || sr_engine_forked(s->engine))
        return;
    int copy = copy_of(aTHX_ fd);
    bool taken = sirius_helm_take(s);
    sr_engine_log_to(s->engine, copy);
    sirius_helm_leave(s, taken);
}

/* --- a request that ended with its worker --- */

static sr_bytes lost_get(void *ctx, const sr_logitem *item)
{
    const sr_row_request *request = ctx;
    static char text[SR_PEER_TEXT_MAX];
    sr_bytes line = sr_bytes_of((const char *)request->line, request->line_len);
    const char *space = memchr(line.at, ' ', line.len);
    size_t method = space ? (size_t)(space - line.at) : line.len;
    switch (item->kind) {
    case SR_LOG_REMOTE_ADDR:
        return sr_bytes_of(text, sr_peer_text(&request->peer, text));
    case SR_LOG_REQUEST_LINE:
        return line;
    case SR_LOG_METHOD:
        return sr_bytes_of(line.at, method);
    case SR_LOG_URI:
        return space ? sr_bytes_of(space + 1, line.len - method - 1) : sr_bytes_of(NULL, 0);
    default:
        return sr_bytes_of(NULL, 0);
    }
}

void sirius_accesslog_lost(pTHX_ HV *conf, const sr_row *row)
{
    sr_row_request request;
    if (!sr_row_read(row, &request) || !request.began || request.status)
        return;
    int64_t now = sr_clock_monotonic();
    sr_logfacts facts = {
        .total_ns = now - (int64_t)request.began, .queue_ns = -1, .app_ns = -1, .aborted = true};
    if (facts.total_ns < min_ns(aTHX_ conf))
        return;
    sr_sink *sink = sink_of(aTHX_ conf);
    const sirius_logformat *format = INT2PTR(sirius_logformat *, SvIV(SvRV(*hv_fetchs(conf, "format", 0))));
    sr_logsource source = {.ctx = &request,
                           .get = lost_get,
                           .wall = sr_clock_wall() - facts.total_ns,
                           .pid = (int)atomic_load_explicit(&row->pid, memory_order_relaxed)};
    sr_logformat_line(format->program, &source, &facts, sr_sink_line(sink));
    sr_sink_added(sink, now);
    sr_sink_free(sink);
}

/* --- with an edge --- */

static bool from_env(const sr_logitem *item)
{
    return item->kind < SR_LOG_TEXT && item->kind != SR_LOG_OUT;
}

void sirius_accesslog_view(pTHX_ sirius *s, HV *conf)
{
    SV **format = hv_fetchs(conf, "format", 0);
    size_t count;
    if (!format || !SvROK(*format) || !sv_derived_from(*format, "Sirius::LogFormat"))
        croak("Sirius::Engine->new: access_log is not whole");
    view_open(aTHX_ s, *format);
    const sr_logitem *items = sr_logformat_items(program(s), &count);
    for (size_t i = 0; i < count; i++)
        if (from_env(&items[i]))
            s->log->id = sr_logformat_id(program(s));
}

void sirius_accesslog_begin(sirius *s, const sr_task *t)
{
    sr_logrequest *r = &s->log->request;
    const sirius_site *site = &s->site[t->conn->listener];
    if (!s->log->id)
        return;
    r->request = t->request;
    r->base = t->base;
    r->body_length = t->body_length;
    r->address = sr_bytes_of(s->log->address, sr_peer_text(&t->conn->client, s->log->address));
    r->server_name = sr_bytes_of(SvPVX(site->name), SvCUR(site->name));
    r->server_port = sr_bytes_of(SvPVX(site->port), SvCUR(site->port));
    r->said = t->forwarded != NULL;
    if (r->said)
        r->forwarded = *t->forwarded;
}

static bool same(sr_bytes a, sr_bytes b)
{
    return !a.at == !b.at && sr_bytes_equal(a, b);
}

/* False: no memory, or no room in a reply: the line will have less in it. */
static bool add(sr_buffer *run, uint32_t item, sr_bytes value)
{
    sr_reply_value v = {item, value.at ? (uint32_t)value.len : SR_REPLY_NO_VALUE};
    if (value.len > SR_REPLY_LOG_MAX || sr_buffer_len(run) + sizeof v + value.len > SR_REPLY_LOG_MAX ||
        !sr_buffer_reserve(run, sizeof v + value.len))
        return false;
    return sr_buffer_add(run, &v, sizeof v) && sr_buffer_add_bytes(run, value);
}

void sirius_accesslog_say(pTHX_ sirius *s)
{
    sirius_accesslog *log = s->log;
    sr_buffer *run = &log->run;
    size_t count;
    const sr_logitem *items = sr_logformat_items(program(s), &count);
    if (!log->id || !s->turn.env)
        return;
    view_env(aTHX_ s, s->turn.pooled && envpool_untouched(aTHX_ s->turn.pooled));
    sr_buffer_reset(run);
    for (size_t i = 0; i < count; i++) {
        if (!from_env(&items[i]))
            continue;
        sr_bytes now = sirius_logview_get(&log->view, &items[i]);
        if (same(now, sr_logrequest_get(&log->request, &items[i])))
            continue;
        if (sr_buffer_len(run) || sr_buffer_add(run, &log->id, sizeof log->id))
            add(run, (uint32_t)i, now);
    }
    sr_worker_log(&s->worker, sr_bytes_of(run->data ? sr_buffer_at(run) : "", sr_buffer_len(run)));
}
