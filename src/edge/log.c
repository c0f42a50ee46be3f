#include "log.h"

#include "../conn/identity.h"
#include "../http/response.h"
#include "../log/values.h"
#include "../share/reply.h"
#include "holder.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* What the access log needs in addition to conn/accesslog.h. */
typedef struct sr_log {
    sr_logformat *format;
    uint64_t id; /* of the format; values that a worker sends for another format are ignored */
    bool outs;   /* the format needs fields of responses */
    int pid;     /* of this process */
    sr_logsource source;
    sr_logvalues request; /* the request whose line is being made */
    /* taken from the entry, which is forgotten before the line is made */
    sr_buffer values, outs_of, request_of;
    char address[SR_PEER_TEXT_MAX];
} sr_log;

static const sr_bytes none = {NULL, 0};

/*
 * Finds the value of an item in a run of values. False: it is not there. An incomplete value ends the search.
 */
static bool find(const sr_buffer *run, size_t from, uint32_t item, sr_bytes *value)
{
    sr_reply_value v;
    size_t len = sr_buffer_len(run);
    while (from <= len && len - from >= sizeof v) {
        memcpy(&v, sr_buffer_at(run) + from, sizeof v);
        from += sizeof v;
        size_t bytes = v.len == SR_REPLY_NO_VALUE ? 0 : v.len;
        if (bytes > len - from)
            return false;
        if (v.item == item) {
            *value = v.len == SR_REPLY_NO_VALUE ? none : sr_bytes_of(sr_buffer_at(run) + from, bytes);
            return true;
        }
        from += bytes;
    }
    return false;
}

static sr_bytes value_of(void *ctx, const sr_logitem *item)
{
    sr_edge *ed = ctx;
    sr_log *log = ed->log;
    size_t count;
    uint32_t i = (uint32_t)(item - sr_logformat_items(log->format, &count));
    sr_bytes value = none;
    if (item->kind == SR_LOG_OUT && !ed->engine->log->response.at) {
        find(&log->outs_of, 0, i, &value);
        return value;
    }
    bool server = item->kind == SR_LOG_OUT || item->kind == SR_LOG_TLS || item->kind == SR_LOG_REFUSED ||
                  item->kind == SR_LOG_REFUSED_BY;
    if (server) { /* a worker has no say in these */
        log->request.response = ed->engine->log->response;
        log->request.reason = sr_accesslog_reason(ed->engine->log->of);
    } else if (find(&log->values, sizeof log->id, i, &value) || !log->request.request) {
        return value;
    }
    return sr_logvalues_get(&log->request, item);
}

/* --- public functions --- */

int sr_log_open(sr_edge *ed, const sr_setup *s)
{
    sr_logformat_error why;
    sr_log *log = ed->log = calloc(1, sizeof *log);
    sr_accesslog *lines = calloc(1, sizeof *lines);
    if (log && lines)
        log->format = sr_logformat_new(s->log.format, strlen(s->log.format), NULL, &why);
    if (!log || !lines || !log->format) {
        free(lines);
        return ENOMEM; /* the format is valid: the supervisor has compiled it before */
    }
    log->id = sr_logformat_id(log->format);
    log->outs = sr_logformat_has(log->format, SR_LOG_OUT);
    log->pid = (int)getpid();
    log->source = (sr_logsource){.ctx = ed, .get = value_of, .pid = log->pid};
    *lines = (sr_accesslog){
        .format = log->format,
        .sink = sr_sink_new(s->log.kind, s->log.fd, s->log.at_once ? 1 : SR_SINK_BATCH),
        .min_ns = s->log.min_ns,
        .errors_only = s->log.errors_only,
    };
    if (!lines->sink) {
        free(lines);
        return errno;
    }
    sr_sink_syslog(lines->sink, (int)s->log.priority);
    return sr_accesslog_begin(ed->engine, lines);
}

void sr_log_close(sr_edge *ed)
{
    sr_log *log = ed->log;
    if (!log)
        return;
    if (log->format)
        sr_logformat_free(log->format);
    sr_logvalues_free(&log->request);
    sr_buffer_free(&log->values);
    sr_buffer_free(&log->outs_of);
    sr_buffer_free(&log->request_of);
    free(log);
    ed->log = NULL;
}

/* Keeps the fields of a head that the format asks for. Without memory the line will lack values. */
static void keep_outs(const sr_log *log, sr_bytes head, sr_buffer *outs)
{
    size_t count;
    const sr_logitem *items = sr_logformat_items(log->format, &count);
    sr_buffer_reset(outs);
    for (size_t i = 0; log->outs && i < count; i++) {
        if (items[i].kind != SR_LOG_OUT)
            continue;
        sr_bytes value = sr_response_value(head, items[i].name);
        sr_reply_value v = {(uint32_t)i, value.at ? (uint32_t)value.len : SR_REPLY_NO_VALUE};
        if (!sr_buffer_reserve(outs, sizeof v + value.len))
            return;
        sr_buffer_add(outs, &v, sizeof v);
        sr_buffer_add_bytes(outs, value);
    }
}

void sr_log_head(sr_edge *ed, sr_entry *en, sr_bytes head)
{
    if (ed->log && ed->log->outs)
        keep_outs(ed->log, head, &en->outs);
}

bool sr_log_values(sr_edge *ed, sr_entry *en, const char *at, size_t len)
{
    if (sr_buffer_len(&en->values) + len > SR_REPLY_LOG_MAX)
        return false;
    if (ed->log && en->exchange)
        sr_buffer_add(&en->values, at, len);
    return true;
}

/*
 * Without a head, takes the time at which the application was called from the ring, limited to what is
 * possible.
 */
static void begun(sr_edge *ed, sr_exchange *x, int32_t row, uint64_t number)
{
    const sr_ring *ring = row < 0 ? NULL : ed->workers[row].reader.ring;
    if (x->given_at || !ring || atomic_load(&ring->began) != number)
        return;
    int64_t at = atomic_load_explicit(&ring->began_at, memory_order_relaxed);
    x->given_at = at < x->ready_at ? x->ready_at : at > ed->engine->now ? ed->engine->now : at;
}

static void swap(sr_buffer *a, sr_buffer *b)
{
    sr_buffer was = *a;
    *a = *b;
    *b = was;
}

void sr_log_offer(sr_edge *ed, uint32_t slot)
{
    sr_log *log = ed->log;
    sr_entry *en = &ed->entries[slot];
    sr_exchange *x = en->exchange;
    uint64_t id = 0;
    if (!log || !x || !x->owed)
        return;
    const sr_slot *s = sr_queue_at(&ed->queue, slot);
    bool copied = sr_buffer_len(&en->request) > 0, here = copied || !(s->files & SR_FILE_REQUEST);
    int32_t row = sr_holder(ed, slot);
    begun(ed, x, row, en->number);
    swap(&log->values, &en->values); /* the entry will be forgotten */
    swap(&log->outs_of, &en->outs);
    swap(&log->request_of, &en->request);
    sr_buffer_reset(&en->request); /* of an earlier request, while the worker of this one may run on */
    if (sr_buffer_len(&log->values) >= sizeof id)
        memcpy(&id, sr_buffer_at(&log->values), sizeof id);
    if (id != log->id) /* the values are for another format: the worker is of another generation */
        sr_buffer_reset(&log->values);
    const char *data = copied ? sr_buffer_at(&log->request_of) : s->data;
    sr_logvalues *r = &log->request;
    r->request = here ? (const sr_request *)(const void *)data : NULL;
    r->base = data + s->parse;
    r->body_length = s->body_length;
    r->address = sr_bytes_of(log->address, sr_peer_text(&x->client, log->address));
    r->server_name = ed->sites[x->conn->listener].name;
    r->server_port = ed->sites[x->conn->listener].port;
    r->said = s->forwarded;
    r->trusted = x->trusted;
    r->nonce = ed->engine->nonce;
    r->number = en->number ? en->number : sr_identity_number(ed->engine, x);
    r->forwarded = sr_slot_forwarded(s, r->base);
    r->tls = sr_transport_facts(x->conn->transport);
    log->source.wall = x->ready_at + ed->engine->wall_offset;
    log->source.pid = row >= 0 ? ed->workers[row].pid : log->pid;
    sr_accesslog_offer(ed->engine, x, &log->source);
}

void sr_log_offer_task(sr_edge *ed, const sr_task *task, sr_bytes head)
{
    sr_log *log = ed->log;
    sr_exchange *x = task->exchange;
    if (!log)
        return;
    sr_logvalues *r = &log->request;
    sr_buffer_reset(&log->values); /* of the line before */
    r->request = task->request;
    r->base = task->base;
    r->body_length = task->body_length;
    r->address = sr_bytes_of(log->address, sr_peer_text(&x->client, log->address));
    r->server_name = ed->sites[x->conn->listener].name;
    r->server_port = ed->sites[x->conn->listener].port;
    r->said = task->forwarded != NULL;
    r->trusted = x->trusted;
    r->nonce = ed->engine->nonce;
    r->number = sr_identity_number(ed->engine, x);
    r->forwarded = task->forwarded ? *task->forwarded : (sr_forwarded){0};
    r->tls = sr_transport_facts(x->conn->transport);
    log->source.wall = x->ready_at + ed->engine->wall_offset;
    log->source.pid = log->pid;
    keep_outs(log, head, &log->outs_of);
    sr_accesslog_offer(ed->engine, x, &log->source);
}

void sr_log_replace(sr_edge *ed, int fd)
{
    if (ed->log)
        sr_accesslog_replace(ed->engine, fd);
    else
        close(fd);
}
