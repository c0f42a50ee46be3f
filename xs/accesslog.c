/*
 * accesslog: the edge writes the access log. This sends it the values of %env that differ from those of the
 * request.
 */
#include "accesslog.h"

#include "envpool.h"
#include "log/values.h"
#include "logformat.h"
#include "sirius.h"

struct sirius_accesslog {
    SV *format; /* the Sirius::LogFormat. Counted */
    sirius_logscratch scratch;
    sirius_logview view;
    sr_logvalues request;
    sr_buffer run; /* a run of values, see share/reply.h */
    uint64_t id;
    char address[SR_PEER_TEXT_MAX];
};

void sirius_accesslog_free(pTHX_ sirius *s)
{
    if (!s->log)
        return;
    sirius_logscratch_clear(&s->log->scratch);
    sr_logvalues_free(&s->log->request);
    sr_buffer_free(&s->log->run);
    SvREFCNT_dec(s->log->format);
    Safefree(s->log);
}

/* Takes values from the %env of the current request. `untouched`: %env is as the pool has made it. */
static void view_env(pTHX_ sirius *s, bool untouched)
{
    sirius_logview *view = &s->log->view;
    PERL_UNUSED_CONTEXT;
#ifdef MULTIPLICITY
    view->my_perl = aTHX;
#endif
    view->env = s->turn.env.hv;
    view->pooled = untouched ? s->turn.env.pooled : NULL;
    view->shape = view->pooled ? (unsigned)(view->pooled - s->pool.of) : 0;
}

static sr_logformat *program(const sirius_accesslog *log)
{
    const sirius_logformat *compiled = INT2PTR(sirius_logformat *, SvIVX(log->format));
    return compiled->program;
}

static bool from_env(const sr_logitem *item)
{
    return item->kind < SR_LOG_TEXT && item->kind != SR_LOG_OUT && item->kind != SR_LOG_REQUEST_ID &&
           item->kind != SR_LOG_TRACEPARENT && item->kind != SR_LOG_REFUSED &&
           item->kind != SR_LOG_REFUSED_BY;
}

void sirius_accesslog_open(pTHX_ sirius *s, HV *conf)
{
    SV **format = hv_fetchs(conf, "format", 0);
    size_t count;
    if (!format || !SvROK(*format) || !sv_derived_from(*format, "Sirius::LogFormat"))
        croak("Sirius::Worker::RequestLoop->new: the format of access_log is not a Sirius::LogFormat");
    Newxz(s->log, 1, sirius_accesslog);
    s->log->format = SvREFCNT_inc(SvRV(*format));
    s->log->view.scratch = &s->log->scratch;
    s->log->view.plain = true; /* a reply is under construction: no code of Perl may run */
    const sr_logitem *items = sr_logformat_items(program(s->log), &count);
    for (size_t i = 0; i < count; i++)
        if (from_env(&items[i]))
            s->log->id = sr_logformat_id(program(s->log));
}

void sirius_accesslog_begin(sirius *s)
{
    sr_logvalues *r = &s->log->request;
    const sr_worker_request *q = &s->worker.request;
    const sirius_site *site = &s->site[q->slot->listener];
    if (!s->log->id)
        return;
    r->request = q->request;
    r->base = q->base;
    r->body_length = q->slot->body_length;
    r->address = sr_bytes_of(s->log->address, sr_peer_text(&q->slot->client, s->log->address));
    r->server_name = sr_bytes_of(SvPVX(site->name), SvCUR(site->name));
    r->server_port = sr_bytes_of(SvPVX(site->port), SvCUR(site->port));
    r->said = q->slot->forwarded;
    if (r->said)
        r->forwarded = sr_slot_forwarded(q->slot, q->base);
}

static bool same(sr_bytes a, sr_bytes b)
{
    return !a.at == !b.at && sr_bytes_equal(a, b);
}

/* False: no memory, or the reply would be too long. The value will be missing in the line. */
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
    const sr_logitem *items = sr_logformat_items(program(s->log), &count);
    if (!log->id || !s->turn.env.hv)
        return;
    view_env(aTHX_ s, s->turn.env.pooled && envpool_untouched(aTHX_ s->turn.env.pooled));
    sr_buffer_reset(run);
    for (size_t i = 0; i < count; i++) {
        if (!from_env(&items[i]))
            continue;
        sr_bytes now = sirius_logview_get(&log->view, &items[i]);
        if (same(now, sr_logvalues_get(&log->request, &items[i])))
            continue;
        if (sr_buffer_len(run) || sr_buffer_add(run, &log->id, sizeof log->id))
            add(run, (uint32_t)i, now);
    }
    sr_worker_log(&s->worker, sr_buffer_bytes(run));
}
