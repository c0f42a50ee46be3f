#ifdef SR_HTTP2

#include "tunnel.h"

#include "../conn/deadline.h"
#include "../conn/trouble.h"
#include "../http1/ownhead.h"
#include "../net/descriptors.h"
#include "put.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TURNS = 4 };

static sr_h2_stream *of(const sr_exchange *x)
{
    return x->stream;
}

static bool has_pair(const sr_pump *p)
{
    return p && p->source.fd >= 0;
}

/* --- from the client --- */

/* Passes on what waits, and the end. */
static void up(sr_h2_stream *st)
{
    sr_pump *p = st->pump;
    int err = 0;
    while (!err && sr_buffer_len(&p->up)) {
        size_t n;
        err = sr_pump_push(p, &n);
        sr_stream_passed(st, n);
    }
    p->failed = p->failed || (err && err != EAGAIN);
    if (sr_buffer_len(&p->up))
        return;
    sr_buffer_free(&p->up);
    if (st->ended && !p->up_over) {
        p->up_over = true;
        shutdown(p->source.fd, SHUT_WR);
    }
}

/* --- from the application --- */

/* The head of its answer, and what is here behind it. False: it is none. */
static bool answer(sr_h2_stream *st)
{
    sr_engine *e = st->session->engine;
    sr_exchange *x = st->exchange;
    sr_pump *p = st->pump;
    sr_bytes in = sr_buffer_bytes(&p->head), made;
    sr_buffer fields = {0};
    sr_ownhead a;
    sr_ownhead_result r = sr_ownhead_read(&a, in, &fields);
    bool ok = r != SR_OWNHEAD_BAD;
    if (r == SR_OWNHEAD_DONE) {
        const sr_head head = {.status = a.status == 101  ? 200
                                        : a.status < 300 ? 501
                                                         : a.status,
                              .fields = sr_buffer_bytes(&fields),
                              .length = SR_LENGTH_UNKNOWN,
                              .app_length = SR_LENGTH_UNKNOWN};
        sr_deadline_clear_exchange(e, x);
        x->is_own = true; /* the time that it is open is no latency */
        ok = sr_h2_head(e, x, &head, &made) == SR_RESPONSE_OK;
        if (ok)
            sr_h2_piece(e, x, sr_bytes_of(in.at + a.len, in.len - a.len), false);
        sr_buffer_free(&p->head);
    }
    sr_buffer_free(&fields);
    return ok;
}

/* Takes what the application has written, as long as the client takes it. */
static void down(sr_h2_stream *st)
{
    sr_engine *e = st->session->engine;
    sr_exchange *x = st->exchange;
    sr_pump *p = st->pump;
    for (int turns = 0; turns < TURNS && !p->down_ends && !p->failed; turns++) {
        ssize_t n;
        if (st->out && sr_output_pending(st->out) >= SR_PUMP_BYTES)
            return;
        int err = sr_pump_take(p, e->intake.scratch, &n);
        if (err == EAGAIN)
            return;
        if (err)
            p->failed = true;
        else if (n > 0 && st->answered)
            sr_h2_piece(e, x, sr_bytes_of(e->intake.scratch, (size_t)n), false);
        else if (n > 0)
            p->failed = !sr_buffer_add(&p->head, e->intake.scratch, (size_t)n) || !answer(st);
    }
}

/* --- both --- */

/* Its own side has ended. Events to watch for; or *over: the stream is. */
static uint32_t ended(sr_h2_stream *st, bool *over)
{
    sr_exchange *x = st->exchange;
    sr_pump *p = st->pump;
    bool closed = sr_pump_closed(p);
    if (!x->slot && (closed || p->up_over || !st->answered || st->detached)) {
        *over = true;
        return 0;
    }
    if (!st->answered || (x->slot && closed)) /* the worker will say what becomes of it */
        return 0;
    if (!p->down_over) { /* it has shut down its side alone, and reads on */
        p->down_over = true;
        x->left = 0;
        sr_h2_piece(st->session->engine, x, sr_bytes_of("", 0), true);
    }
    return p->up_over ? 0 : EPOLLHUP;
}

/* Goes on, or ends. The exchange may be over. */
static void settle(sr_h2_stream *st)
{
    sr_engine *e = st->session->engine;
    sr_exchange *x = st->exchange;
    sr_pump *p = st->pump;
    bool over = false;
    uint32_t events = sr_buffer_len(&p->up) ? EPOLLOUT : 0u;
    if (p->down_ends)
        events |= ended(st, &over);
    else if (!st->out || sr_output_pending(st->out) < SR_PUMP_BYTES)
        events |= EPOLLIN;
    if (p->failed || (over && !st->answered) || !sr_pump_watch(e, p, over ? 0 : events)) {
        sr_h2_cut(e, x);
        return;
    }
    if (!over)
        return;
    if (st->finished && !st->ended)
        sr_session_reset(st->session, st->id, NGHTTP2_NO_ERROR);
    sr_h2_end(e, x);
}

void sr_tunnel_came(sr_h2_stream *st, sr_bytes bytes)
{
    sr_session *s = st->session;
    sr_engine *e = s->engine;
    if (!st->pump && (st->pump = sr_pump_new(s->conn)))
        st->pump->exchange = st->exchange;
    sr_pump *p = st->pump;
    s->passing += bytes.len;
    e->passing += bytes.len;
    bool unwanted = p && p->up_over && bytes.len; /* the application takes no more */
    bool kept = p && !unwanted && sr_buffer_add_bytes(&p->up, bytes);
    sr_stream_passed(st, kept ? 0 : bytes.len);
    if (kept && has_pair(p))
        up(st);
    bool lost = !kept && !unwanted;
    bool greedy =
        kept && sr_buffer_len(&p->up) && s->passing + e->passing > SR_OUTPUT_TOTAL; /* leaves others less */
    if (lost || greedy)
        sr_h2_cut(e, st->exchange);
    else if (has_pair(p))
        settle(st);
}

void sr_tunnel_pumped(sr_engine *e, sr_exchange *x)
{
    sr_h2_stream *st = of(x);
    (void)e;
    if (!has_pair(st->pump))
        return;
    up(st);
    down(st);
    settle(st);
}

/* --- the response --- */

/* So many applications have of this connection. */
static uint64_t lent_of(const sr_session *s)
{
    uint64_t n = 0;
    for (const sr_link *l = s->streams.next; l != &s->streams; l = l->next)
        n += has_pair(SR_LIST_ENTRY(l, sr_h2_stream, link)->pump);
    return n;
}

int sr_tunnel_lend(sr_engine *e, sr_exchange *x, int *theirs)
{
    sr_h2_stream *st = of(x);
    if (!sr_tunnel_is(st) || has_pair(st->pump))
        return EBADF;
    uint64_t its = lent_of(st->session); /* no more than are left for others */
    if (e->n_lent + its >= e->config.max_connections)
        return EMFILE;
    if (!st->pump && !(st->pump = sr_pump_new(x->conn)))
        return ENOMEM;
    st->pump->exchange = x;
    int err = sr_pump_pair(st->pump, theirs);
    if (err)
        return err;
    e->n_lent++;
    /* what is scarce is for connections, files and workers that come */
    if (st->pump->source.fd + (int)its >= e->capacity.scarce) {
        sr_trouble_count(e, SR_TROUBLE_DESCRIPTORS, 1, EMFILE);
        close(*theirs);
        sr_stream_drop_pump(st);
        return EMFILE;
    }
    sr_deadline_clear_exchange(e, x);
    return 0;
}

bool sr_tunnel_spoken(sr_engine *e, sr_exchange *x)
{
    sr_h2_stream *st = of(x);
    (void)e;
    if (has_pair(st->pump))
        down(st);
    return st->pump && st->pump->spoken;
}

void sr_tunnel_detach(sr_engine *e, sr_exchange *x)
{
    sr_h2_stream *st = of(x);
    x->back_at = e->now;
    sr_deadline_clear_exchange(e, x);
    sr_accesslog_keep(e, x);
    sr_stream_drop_request(st);
    if (has_pair(st->pump))
        sr_tunnel_pumped(e, x);
    else /* the client has reset it meanwhile */
        sr_h2_cut(e, x);
}

sr_response_error sr_tunnel_head(sr_engine *e, sr_exchange *x, const sr_head *h, sr_bytes *made)
{
    sr_h2_stream *st = of(x);
    if (!x->is_tunnel)
        return sr_h2_head(e, x, h, made);
    if (!x->held && sr_tunnel_spoken(e, x)) {
        *made = sr_bytes_of("", 0);
        return SR_RESPONSE_OK;
    }
    sr_head other = *h;
    if (x->held || h->status >= 200)
        sr_stream_drop_pump(st);
    if (x->held && h->status == 101)
        other.status = 200;
    else if (h->status >= 200 && h->status < 300)
        other.status = 501;
    return sr_h2_head(e, x, &other, made);
}

void sr_tunnel_piece(sr_engine *e, sr_exchange *x, sr_bytes body, bool last)
{
    if (!of(x)->pump)
        sr_h2_piece(e, x, body, last);
}

void sr_tunnel_file(sr_engine *e, sr_exchange *x, const sr_content *content)
{
    if (!of(x)->pump) {
        sr_h2_file(e, x, content);
        return;
    }
    sr_descriptors_discard(content->fd);
    sr_parts_free(content->parts);
}

void sr_tunnel_end(sr_engine *e, sr_exchange *x)
{
    if (of(x)->pump)
        sr_tunnel_detach(e, x);
    else
        sr_h2_end(e, x);
}

#endif
