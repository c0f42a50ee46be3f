#ifdef SR_HTTP2

#include "state.h"

#include "../conn/parting.h"
#include "../conn/trouble.h"

#include <errno.h>
#include <stdlib.h>

sr_h2_stream *sr_stream_new(sr_session *s, int32_t id)
{
    sr_h2_stream *st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->session = s;
    st->id = id;
    sr_link_init(&st->link);
    sr_link_append(&s->streams, &st->link);
    s->n_streams++;
    sr_counters_add(&s->engine->row->counters.streams, 1);
    sr_counters_add(&s->engine->row->streams, 1);
    return st;
}

bool sr_stream_keep_head(sr_h2_stream *st, sr_bytes head)
{
    if (!sr_buffer_add_bytes(&st->head, head))
        return false;
    st->session->heads += head.len;
    return true;
}

static void drop_head(sr_h2_stream *st)
{
    st->session->heads -= sr_buffer_len(&st->head);
    sr_buffer_free(&st->head);
}

void sr_stream_drop_request(sr_h2_stream *st)
{
    sr_exchange_drop_request(st->exchange);
    drop_head(st);
}

void sr_stream_drop_output(sr_h2_stream *st)
{
    if (!st->out)
        return;
    st->session->engine->pending -= sr_output_memory(st->out);
    sr_output_free(st->out);
    st->out = NULL;
}

void sr_stream_passed(sr_h2_stream *st, size_t n)
{
    sr_session *s = st->session;
    s->passing -= n;
    s->engine->passing -= n;
    if (!n)
        return;
    nghttp2_session_consume_stream(s->ng, st->id, n);
    sr_session_due(s);
}

void sr_stream_drop_pump(sr_h2_stream *st)
{
    sr_engine *e = st->session->engine;
    if (!st->pump)
        return;
    sr_stream_passed(st, sr_buffer_len(&st->pump->up));
    e->n_lent -= st->pump->source.fd >= 0;
    sr_pump_free(e, st->pump);
    st->pump = NULL;
}

bool sr_stream_has_enough(sr_engine *e, const sr_exchange *x, int fd)
{
    const sr_exchange *o = fd < e->capacity.scarce ? NULL : x->conn->exchange;
    for (; o; o = o->older) {
        const sr_h2_stream *st = o->stream;
        if (o == x || !(st->filed || (st->out && st->out->fd >= 0) || (o->body && o->body->fd >= 0)))
            continue;
        sr_trouble_count(e, SR_TROUBLE_DESCRIPTORS, 1, EMFILE);
        return true;
    }
    return false;
}

void sr_stream_free(sr_h2_stream *st)
{
    sr_session *s = st->session;
    sr_stream_drop_output(st);
    drop_head(st);
    sr_link_remove(&st->link);
    s->n_streams--;
    s->n_detached -= st->detached;
    sr_counters_add(&s->engine->row->streams, (uint64_t)-1);
    if (s->complete == st)
        s->complete = NULL;
    free(st);
}

void sr_stream_abandon(sr_session *s, sr_exchange *x)
{
    sr_link *runs_on = sr_exchange_abandon(s->engine, x);
    if (runs_on)
        sr_link_append(&s->run_on, runs_on);
}

/* The client has ended it, and all that it has sent is here: the application gets that. */
static void part(sr_h2_stream *st)
{
    st->session->passing -= sr_buffer_len(&st->pump->up);
    sr_parting_begin(st->session->engine, st->pump);
    st->pump = NULL;
}

void sr_stream_over(sr_h2_stream *st, sr_over how)
{
    sr_engine *e = st->session->engine;
    sr_exchange *x = st->exchange;
    if (!x)
        return;
    st->exchange = NULL;
    if (st->ended && !x->broken && st->pump && st->pump->source.fd >= 0 && sr_buffer_len(&st->pump->up))
        part(st);
    sr_stream_drop_pump(st);
    sr_stream_abandon(st->session, x);
    x->sent_from = x->conn->sent - st->sent; /* what account.h counts is the difference */
    x->head_bytes = (uint32_t)(st->sent - st->body);
    if (x->held && x->is_own && !x->broken)
        how = SR_OVER_WHOLE; /* its client has left what was held for it, as it may */
    sr_account_over(e, x, how);
    x->broken = x->broken || how == SR_OVER_ABORTED;
    sr_exchange_end(e, x);
}

void sr_stream_finish(sr_h2_stream *st)
{
    bool detached = st->detached;
    sr_session_due(st->session); /* the connection may end with it */
    sr_stream_over(st, SR_OVER_WHOLE);
    if (detached && !st->session->telling)
        sr_stream_free(st);
}

void sr_session_due(sr_session *s)
{
    if (sr_link_alone(&s->conn->due))
        s->conn->due_at = (uint32_t)s->engine->now;
    if (s->over || s->drained) /* that is not to wait for responses */
        s->conn->due_at = (uint32_t)s->engine->now - SR_HOLD_NS;
    sr_link_append(&s->engine->due, &s->conn->due);
}

void sr_session_submitted(sr_session *s, int err)
{
    if (!nghttp2_is_fatal(err))
        return;
    s->over = true;
    sr_session_due(s);
}

void sr_session_reset(sr_session *s, int32_t id, uint32_t error)
{
    sr_session_submitted(s, nghttp2_submit_rst_stream(s->ng, NGHTTP2_FLAG_NONE, id, error));
}

bool sr_session_spent(const sr_session *s, uint32_t more)
{
    const sr_config *config = &s->engine->config;
    uint64_t most = config->keepalive ? config->max_keepalive_reqs : 1;
    return most && s->conn->requests >= most + more;
}

void sr_session_drain(sr_engine *e, sr_conn *c)
{
    sr_session *s = c->session;
    if (!s->warned) {
        s->warned = true;
        s->warned_at = e->now;
        sr_session_submitted(s, nghttp2_submit_shutdown_notice(s->ng));
        sr_session_submitted(s, nghttp2_submit_ping(s->ng, NGHTTP2_FLAG_NONE, NULL));
    }
    sr_session_due(s); /* which says GOAWAY when it is time */
}

int64_t sr_session_goaway_at(const sr_session *s)
{
    return s->warned && !s->drained && (s->acked || !s->n_streams) ? s->warned_at + SR_GOAWAY_NS
                                                                   : SR_NO_LIMIT;
}

void sr_session_goaway(sr_session *s)
{
    if (s->drained)
        return;
    s->drained = true;
    int32_t last = nghttp2_session_get_last_proc_stream_id(s->ng);
    sr_session_submitted(s, nghttp2_submit_goaway(s->ng, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, NULL, 0));
    sr_session_due(s);
}

#endif
