#include "accesslog.h"

#include "../http/traced.h"
#include "../net/descriptors.h"
#include "../share/facts.h"
#include "client.h"
#include "engine.h"
#include "trouble.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { RAW_LINE_MAX = 1024 }; /* how much of a first line is logged that is not a request line */

/* --- requests that the application did not answer --- */

/* What is known of such a request: its head, or the part that was received, and the response. */
typedef struct raw {
    const sr_exchange *exchange;
    const sr_request *request; /* parsed from `head`, perhaps incomplete or refused; NULL: use `line` */
    sr_bytes head;
    sr_bytes line;          /* the first line of the head */
    sr_bytes response;      /* the head of the response; a body may follow */
    sr_bytes rule;          /* that it has broken, if it was refused for one */
    bool trusted;           /* the peer is */
    uint64_t nonce, number; /* of the id that it gets */
    char addr[SR_PEER_TEXT_MAX], path[RAW_LINE_MAX], id[SR_REQUEST_ID_MADE];
} raw;

static const sr_bytes none = {NULL, 0};

/* What is behind the empty lines that precede a request line. */
static sr_bytes behind_blanks(sr_bytes head)
{
    size_t n = 0;
    while (n < head.len && (head.at[n] == '\r' || head.at[n] == '\n'))
        n++;
    return n < head.len ? sr_bytes_of(head.at + n, head.len - n) : none;
}

/* The line is logged to its LF: a CR within it is one of its characters, which is escaped. */
static sr_bytes first_line(sr_bytes head)
{
    sr_bytes from = behind_blanks(head);
    size_t n = 0;
    while (n < from.len && n < RAW_LINE_MAX && from.at[n] != '\n')
        n++;
    while (n && from.at[n - 1] == '\r')
        n--;
    return n ? sr_bytes_of(from.at, n) : none;
}

/* The part of a line before its first space, or (target) the part after it. */
static sr_bytes line_part(sr_bytes line, bool target)
{
    const char *space = line.len ? memchr(line.at, ' ', line.len) : NULL;
    if (!space)
        return target ? none : line;
    size_t n = (size_t)(space - line.at);
    return target ? sr_bytes_of(space + 1, line.len - n - 1) : sr_bytes_of(line.at, n);
}

static sr_bytes path_of(raw *r)
{
    sr_bytes path = sr_span_in(r->head.at, r->request->path);
    if (!path.len || path.len > sizeof r->path)
        return path.len ? path : SR_BYTES("/");
    return sr_bytes_of(r->path, sr_path_decode(r->path, path));
}

static sr_bytes field_of(const raw *r, sr_bytes name)
{
    for (uint32_t i = 0; i < r->request->n_fields; i++)
        if (sr_bytes_equal_nocase(sr_span_in(r->head.at, r->request->fields[i].name), name))
            return sr_span_in(r->head.at, r->request->fields[i].value);
    return none;
}

/* Finds values of a request whose first line was parsed. */
static sr_bytes parsed_get(raw *r, const sr_logitem *item)
{
    const sr_request *q = r->request;
    switch (item->kind) {
    case SR_LOG_METHOD:
        return sr_span_in(r->head.at, q->method);
    case SR_LOG_URI:
        return sr_span_in(r->head.at, q->target);
    case SR_LOG_PROTOCOL:
        return q->minor ? SR_BYTES("HTTP/1.1") : SR_BYTES("HTTP/1.0");
    case SR_LOG_PATH:
        return path_of(r);
    case SR_LOG_QUERY:
        return q->has_query ? sr_span_in(r->head.at, q->query) : none;
    case SR_LOG_HOST:
        return q->host.len ? sr_span_in(r->head.at, q->host) : none;
    case SR_LOG_IN:
        return field_of(r, item->name);
    case SR_LOG_TRACEPARENT:
        return sr_traced_parent(q, r->head.at);
    default:
        return none;
    }
}

static sr_bytes id_of(raw *r)
{
    sr_bytes id = r->trusted && r->request ? sr_traced_id(r->request, r->head.at) : none;
    return id.at || !r->number ? id : sr_traced_make(r->id, r->nonce, r->number);
}

static sr_bytes raw_get(void *ctx, const sr_logitem *item)
{
    raw *r = ctx;
    if (item->kind == SR_LOG_REMOTE_ADDR)
        return sr_bytes_of(r->addr, sr_peer_text(&r->exchange->client, r->addr));
    if (item->kind == SR_LOG_OUT)
        return sr_logformat_field(r->response, item->name);
    if (item->kind == SR_LOG_REQUEST_LINE)
        return r->line.len ? r->line : none;
    if (item->kind == SR_LOG_REQUEST_ID)
        return id_of(r);
    if (item->kind == SR_LOG_REFUSED)
        return r->rule.at ? r->rule : sr_accesslog_reason(r->exchange);
    if (item->kind == SR_LOG_REFUSED_BY)
        return sr_accesslog_reason(r->exchange);
    sr_fact fact;
    if (item->kind == SR_LOG_TLS)
        return sr_fact_find(item->name, &fact)
                   ? sr_facts_get(sr_transport_facts(r->exchange->conn->transport), fact)
                   : none;
    if (r->request)
        return parsed_get(r, item);
    if (item->kind == SR_LOG_METHOD || item->kind == SR_LOG_URI)
        return line_part(r->line, item->kind == SR_LOG_URI);
    return none;
}

static sr_logsource raw_source(const sr_engine *e, raw *r)
{
    int64_t came = r->exchange->ready_at ? r->exchange->ready_at : e->now;
    return (sr_logsource){.ctx = r, .get = raw_get, .wall = came + e->wall_offset, .pid = (int)getpid()};
}

/*
 * Parses the head again, as the first result was not kept, and finds out whose request it is, if the head is complete. NULL: it has
 * not even a method.
 */
static const sr_request *parse_again(sr_engine *e, sr_exchange *x, sr_bytes head)
{
    const sr_conn *c = x->conn;
    sr_request_limits limits = sr_client_limits(e, c);
    sr_request_init(&e->request);
    bool whole = sr_request_feed(&e->request, &limits, head.at, head.len) == SR_PARSE_DONE;
    if (whole && c->state != SR_CONN_READY && e->config.trusted.n)
        sr_client_forwarded(e, x, &e->request, head.at);
    return e->request.method.len ? &e->request : NULL;
}

/* The rule that its head or its body has broken, after parse_again. */
static sr_bytes rule_of(const sr_engine *e, const sr_exchange *x)
{
    const sr_request *q = &e->request;
    const char *why = e->refusal;
    if (!why && x->body && x->body->status)
        why = x->body->why;
    else if (!why && q->status)
        why = q->why;
    else if (!why && q->framing == SR_BODY_LENGTH && q->content_length > e->config.max_body)
        why = SR_BODY_TOO_LARGE;
    return why ? sr_bytes_of(why, strlen(why)) : none;
}

/* --- lines --- */

static bool wanted(const sr_accesslog *log, const sr_logfacts *facts)
{
    return facts->total_ns >= log->min_ns && (!log->errors_only || facts->status >= 400 || facts->aborted);
}

static sr_logfacts facts_of(const sr_engine *e, const sr_exchange *x, bool aborted)
{
    const sr_conn *c = x->conn;
    bool given = x->ready_at && x->given_at;
    uint64_t head = x->status && x->head_bytes < x->sent ? x->head_bytes : x->sent;
    return (sr_logfacts){
        .status = (int)x->status,
        .bytes = x->sent,
        .body_bytes = x->sent - head,
        .total_ns = x->ready_at ? e->now - x->ready_at : 0,
        .queue_ns = given ? x->given_at - x->ready_at + x->before_ns : -1,
        .app_ns = given ? (x->back_at > x->given_at ? x->back_at : e->now) - x->given_at : -1,
        .aborted = aborted,
        .kept = c->state == SR_CONN_FLUSH && !c->close_after,
        .nth = c->requests ? c->requests - 1 : 0,
    };
}

sr_bytes sr_accesslog_reason(const sr_exchange *x)
{
    const char *name = sr_refusal_name((sr_refusal)x->refused);
    return name ? sr_bytes_of(name, strlen(name)) : none;
}

void sr_accesslog_forget(sr_exchange *x)
{
    if (!x->record)
        return;
    sr_buffer_free(x->record);
    free(x->record);
    x->record = NULL;
}

/* Keeps the values of a line. Without memory x->record stays NULL, and they will be missing. */
static void keep(sr_engine *e, sr_exchange *x, const sr_logsource *source)
{
    sr_accesslog_forget(x);
    x->record = calloc(1, sizeof *x->record);
    if (x->record && !sr_logformat_early(e->log->format, source, x->record))
        sr_accesslog_forget(x);
}

static bool line(sr_engine *e, sr_exchange *x, const sr_logsource *source, const sr_logfacts *facts,
                 sr_buffer *out)
{
    if (source)
        return sr_logformat_line(e->log->format, source, facts, out);
    if (!x->record) { /* there was no memory to keep the values */
        raw r = {.exchange = x, .line = none};
        sr_logsource bare = raw_source(e, &r);
        return sr_logformat_line(e->log->format, &bare, facts, out);
    }
    sr_bytes record = sr_bytes_of(sr_buffer_at(x->record), sr_buffer_len(x->record));
    return sr_logformat_late(e->log->format, record, facts, out);
}

/*
 * Sets a timer. A time limit of epoll_wait, set and unset around each wait, would cost 5 % of a hello; the
 * timer is set once for a batch.
 */
static void timer_set(const sr_accesslog *log)
{
    int64_t due = sr_sink_due(log->sink);
    struct itimerspec at = {.it_value = {.tv_sec = due / SR_SECOND, .tv_nsec = due % SR_SECOND}};
    timerfd_settime(log->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
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
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    log->timer = (sr_source){.fd = sr_descriptors_above(timer), .kind = SR_SOURCE_LOG};
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

void sr_accesslog_refuse(sr_engine *e, sr_exchange *x, sr_bytes response)
{
    const sr_conn *c = x->conn;
    if (e->log->source && e->log->of == x) {
        e->log->response = response;
        sr_accesslog_keep(e, x);
        e->log->response = none;
        return;
    }
    /* a request that was complete has had its bytes dropped: these are of the next one */
    bool over = c->state == SR_CONN_SERVING, here = sr_buffer_len(&c->in) > 0;
    sr_bytes head = over               ? none
                    : here             ? sr_bytes_of(sr_buffer_at(&c->in), sr_buffer_len(&c->in))
                    : e->fresh_of == c ? e->fresh
                                       : none;
    raw r = {.exchange = x,
             .head = head,
             .line = first_line(head),
             .response = response,
             .trusted = sr_cidrs_have(&e->config.trusted, &c->peer),
             .nonce = e->nonce,
             .number = sr_engine_id(e)};
    r.request = parse_again(e, x, head);
    r.rule = rule_of(e, x);
    if (!r.request &&
        (head.len && (*head.at == '\r' || *head.at == '\n'))) { /* refused for its empty lines */
        r.head = behind_blanks(head);
        r.request = parse_again(e, x, r.head);
    }
    sr_logsource source = raw_source(e, &r);
    keep(e, x, &source);
}

void sr_accesslog_over(sr_engine *e, sr_exchange *x, bool aborted)
{
    sr_accesslog *log = e->log;
    sr_logfacts facts = facts_of(e, x, aborted);
    const sr_logsource *source = log->of == x ? log->source : NULL;
    if (wanted(log, &facts)) {
        bool first = !sr_sink_due(log->sink);
        line(e, x, source, &facts, sr_sink_line(log->sink));
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
