#include "accesslog.h"

#include "../log/values.h"
#include "../net/descriptors.h"
#include "../net/timerfd.h"
#include "engine.h"
#include "identity.h"
#include "trouble.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- requests that the application did not answer --- */

static const sr_bytes none = {NULL, 0};

static sr_bytes value_of(void *values, const sr_logitem *item)
{
    return sr_logvalues_get(values, item);
}

/* What is known of any request that was refused, also without memory for more. `address` gets its text. */
static sr_logvalues values_of(const sr_exchange *x, char address[SR_PEER_TEXT_MAX])
{
    return (sr_logvalues){.refused = true,
                          .address = sr_bytes_of(address, sr_peer_text(&x->client, address)),
                          .tls = sr_transport_facts(x->conn->transport),
                          .reason = sr_accesslog_reason(x)};
}

static sr_logsource source_of(const sr_engine *e, const sr_exchange *x, sr_logvalues *values)
{
    int64_t came = x->ready_at ? x->ready_at : e->now;
    return (sr_logsource){
        .ctx = values, .get = value_of, .wall = came + e->wall_offset, .pid = (int)getpid()};
}

/* --- lines --- */

static bool wanted(const sr_accesslog *log, const sr_logoutcome *outcome)
{
    return outcome->total_ns >= log->min_ns &&
           (!log->errors_only || outcome->status >= 400 || outcome->aborted);
}

/* For which it is held, or was until now, at most 49 days; -1: it was not. */
static int64_t held_ns(const sr_engine *e, const sr_exchange *x)
{
    if (!x->held_at)
        return -1;
    int64_t held = ((uint32_t)(e->now / SR_MILLISECOND) - x->held_at) * SR_MILLISECOND;
    return held < e->now - x->ready_at ? held : e->now - x->ready_at;
}

static sr_logoutcome outcome_of(const sr_engine *e, const sr_exchange *x, bool aborted)
{
    const sr_conn *c = x->conn;
    bool given = x->ready_at && x->given_at;
    int64_t held = held_ns(e, x), back_at = held < 0 ? x->back_at : e->now - held;
    uint64_t sent = c->sent - x->sent_from, head = x->status && x->head_bytes < sent ? x->head_bytes : sent;
    return (sr_logoutcome){
        .status = (int)x->status,
        .bytes = sent,
        .body_bytes = sent - head,
        .total_ns = x->ready_at ? e->now - x->ready_at : 0,
        .queue_ns = given ? x->given_at - x->ready_at + x->before_ns : -1,
        .app_ns = !given                  ? -1
                  : back_at > x->given_at ? back_at - x->given_at
                  : held < 0              ? e->now - x->given_at
                                          : 0, /* less than a millisecond, as which held_at counts */
        .aborted = aborted,
        .broken = x->broken && !c->gone,
        .kept = c->state == SR_CONN_STREAMS || (c->state == SR_CONN_FLUSH && !c->close_after),
        .nth = c->requests ? c->requests - 1 : 0,
        .stream = x->stream_number,
        .held_ns = held,
        .messages = x->messages,
    };
}

sr_bytes sr_accesslog_reason(const sr_exchange *x)
{
    const char *name = sr_refusal_name((sr_refusal)x->refused);
    return name ? sr_bytes_of(name, strlen(name)) : none;
}

void sr_accesslog_forget(sr_exchange *x)
{
    if (!x->values)
        return;
    sr_buffer_free(x->values);
    free(x->values);
    x->values = NULL;
}

/* Keeps the values of a line. Without memory x->values stays NULL, and they will be missing. */
static void keep(sr_engine *e, sr_exchange *x, const sr_logsource *source)
{
    sr_accesslog_forget(x);
    x->values = calloc(1, sizeof *x->values);
    if (x->values && !sr_logformat_early(e->log->format, source, x->values))
        sr_accesslog_forget(x);
}

static bool line(sr_engine *e, sr_exchange *x, const sr_logsource *source, const sr_logoutcome *outcome,
                 sr_buffer *out)
{
    if (source)
        return sr_logformat_line(e->log->format, source, outcome, out);
    if (!x->values) { /* there was no memory to keep the values */
        char address[SR_PEER_TEXT_MAX];
        sr_logvalues bare = values_of(x, address);
        sr_logsource of = source_of(e, x, &bare);
        return sr_logformat_line(e->log->format, &of, outcome, out);
    }
    sr_bytes pieces = sr_bytes_of(sr_buffer_at(x->values), sr_buffer_len(x->values));
    return sr_logformat_late(e->log->format, pieces, outcome, out);
}

/*
 * Sets a timer. A time limit of epoll_wait, set and unset around each wait, would cost 5 % of a hello; the
 * timer is set once for a batch.
 */
static void timer_set(const sr_accesslog *log)
{
    sr_timerfd_set(log->timer.fd, sr_sink_due(log->sink));
}

/*
 * Lines that can't be written are lost. Tells the operator when that begins, and when lines are written
 * again.
 */
static void tell_lost(sr_engine *e)
{
    sr_accesslog *log = e->log;
    uint64_t lost = sr_sink_lost(log->sink);
    if (lost != log->lost) {
        sr_counters_add(&e->row->counters.log_lost, lost - log->lost);
        sr_trouble_count(e, SR_TROUBLE_LOG_LOST, lost - log->lost, sr_sink_error(log->sink));
        log->lost = lost;
        log->failed = true;
    } else if (log->failed && !sr_sink_error(log->sink)) {
        log->failed = false;
        sr_trouble_count(e, SR_TROUBLE_LOG_BACK, 1, 0);
    }
}

static void flush(sr_engine *e)
{
    sr_accesslog *log = e->log;
    if (!log)
        return;
    sr_sink_flush(log->sink);
    tell_lost(e);
    if (sr_sink_due(log->sink))
        timer_set(log);
}

/* --- public functions --- */

int sr_accesslog_begin(sr_engine *e, sr_accesslog *log)
{
    e->log = log;
    log->timer = (sr_source){.fd = sr_descriptors_above(sr_timerfd_open()), .kind = SR_SOURCE_LOG};
    return log->timer.fd < 0 ? errno : sr_loop_add(&e->loop, &log->timer, EPOLLIN);
}

void sr_accesslog_replace(sr_engine *e, int fd)
{
    flush(e);
    sr_sink_replace(e->log->sink, fd);
}

void sr_accesslog_offer(sr_engine *e, const sr_exchange *x, const sr_logsource *source)
{
    if (!x->owed)
        return;
    e->log->source = source;
    e->log->of = x;
}

void sr_accesslog_keep(sr_engine *e, sr_exchange *x)
{
    if (!e->log)
        return;
    if (e->log->source && e->log->of == x)
        keep(e, x, e->log->source);
    e->log->source = NULL;
}

bool sr_accesslog_refuse_offered(sr_engine *e, sr_exchange *x, sr_bytes response)
{
    if (!e->log->source || e->log->of != x)
        return false;
    e->log->response = response;
    sr_accesslog_keep(e, x);
    e->log->response = none;
    return true;
}

void sr_accesslog_refuse(sr_engine *e, sr_exchange *x, sr_bytes response, const sr_refused *of)
{
    if (x->values) /* of a request that was held, and whose bytes are gone */
        return;
    char address[SR_PEER_TEXT_MAX];
    sr_logvalues v = values_of(x, address);
    v.request = of->request;
    v.base = of->base;
    v.line = of->line;
    v.response = response;
    v.rule = of->rule;
    v.trusted = of->trusted;
    v.nonce = e->nonce;
    v.number = sr_identity_number(e, x);
    sr_logsource source = source_of(e, x, &v);
    keep(e, x, &source);
    sr_logvalues_free(&v);
}

void sr_accesslog_over(sr_engine *e, sr_exchange *x, bool aborted)
{
    sr_accesslog *log = e->log;
    sr_logoutcome outcome = outcome_of(e, x, aborted);
    const sr_logsource *source = log->of == x ? log->source : NULL;
    if (wanted(log, &outcome)) {
        bool first = !sr_sink_due(log->sink);
        line(e, x, source, &outcome, sr_sink_line(log->sink));
        sr_sink_added(log->sink, e->now); /* a line that could not be made counts as lost */
        if (!sr_sink_due(log->sink))      /* the batch was full: it was written, or lost */
            tell_lost(e);
        else if (first)
            timer_set(log);
    }
    sr_accesslog_forget(x);
    if (source)
        log->source = NULL;
}

void sr_accesslog_timer(sr_engine *e)
{
    uint64_t times;
    ssize_t n = read(e->log->timer.fd, &times, sizeof times);
    (void)n; /* EAGAIN: the timer was set again meanwhile */
    flush(e);
}

void sr_accesslog_end(sr_engine *e)
{
    if (!e->log)
        return;
    flush(e);
    sr_sink_free(e->log->sink);
    if (e->log->timer.fd >= 0)
        close(e->log->timer.fd);
    free(e->log);
    e->log = NULL;
}
