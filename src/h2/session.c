#ifdef SR_HTTP2

#include "session.h"

#include "../conn/account.h"
#include "../conn/deadline.h"
#include "../conn/joined.h"
#include "../conn/linger.h"
#include "../conn/send.h"
#include "allocator.h"
#include "flood.h"
#include "numbers.h"
#include "priority.h"
#include "request.h"
#include "tunnel.h"

#include <stdlib.h>

enum {
    PREFACE = 24,
    CONN_WINDOW = 4 * 1024 * 1024,
    BATCH = 64 * 1024,  /* bytes written at a time */
    TURN = 1024 * 1024, /* bytes of one connection in one step of the loop, as of HTTP/1.1 */
    WAITING_MAX = 1000, /* frames; all streams together have less than that */
    HEAD_MAX = 64 * 1024 * 1024,
    LARGE = 1024,       /* bytes of a DATA frame */
    EARNS_DATA = 2,     /* the window of the stream and that of the connection */
    EARNS_RESPONSE = 8, /* of which some may be cancelled */
    SETTINGS_MAX = 32,  /* entries of one frame, likewise */
    UNREAD_MAX = 1000,  /* answers to PING and SETTINGS, the default of nghttp2 */
    RESETS_MAX = 1 << 30,
};

/* --- what nghttp2 tells --- */

static int begin_head(nghttp2_session *ng, const nghttp2_frame *f, void *with)
{
    sr_session *s = with;
    if (f->hd.type != NGHTTP2_HEADERS)
        return 0;
    sr_head_begin(s);
    if (f->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0; /* trailers, which nobody gets */
    /* GOAWAY names the last one that is run, and the client may send this one elsewhere */
    if (s->drained || !sr_flood_room(s)) {
        sr_session_reset(s, f->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    sr_h2_stream *st = sr_stream_new(s, f->hd.stream_id);
    if (!st)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(ng, st->id, st);
    return 0;
}

static int field(nghttp2_session *ng, const nghttp2_frame *f, const uint8_t *name, size_t name_len,
                 const uint8_t *value, size_t value_len, uint8_t flags, void *with)
{
    (void)ng, (void)flags;
    if (!sr_flood_field(with, name_len, value_len))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST)
        sr_head_field(with, sr_bytes_of((const char *)name, name_len),
                      sr_bytes_of((const char *)value, value_len));
    return 0;
}

static int data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *at, size_t len, void *with)
{
    sr_session *s = with;
    sr_h2_stream *st = nghttp2_session_get_stream_user_data(ng, id);
    sr_engine *e = s->engine;
    (void)flags;
    nghttp2_session_consume_connection(ng, len);
    if (st && sr_tunnel_is(st)) {
        sr_tunnel_came(st, sr_bytes_of((const char *)at, len));
        return 0;
    }
    if (st && st->exchange && st->exchange->held) {
        /* they lie in memory of this connection, as all that is read */
        if (!e->came(e->with, st->exchange, (char *)(uintptr_t)at, len, false)) {
            st->withheld += len;
            return 0;
        }
    } else if (st && st->exchange && !st->taken && !st->answered) {
        sr_body_arrived(s, st, sr_bytes_of((const char *)at, len));
    }
    nghttp2_session_consume_stream(ng, id, len);
    return 0;
}

static int received(nghttp2_session *ng, const nghttp2_frame *f, void *with)
{
    sr_session *s = with;
    if (f->hd.type == NGHTTP2_PING && f->hd.flags & NGHTTP2_FLAG_ACK)
        s->acked = s->warned;
    if (f->hd.type == NGHTTP2_RST_STREAM)
        sr_counters_add(&s->engine->row->counters.streams_cancelled, 1);
    if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA) {
        sr_h2_priority_update(s, f);
        return 0;
    }
    sr_h2_stream *st = nghttp2_session_get_stream_user_data(ng, f->hd.stream_id);
    if (!st)
        return 0;
    bool ended = f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    st->ended = st->ended || ended;
    if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST)
        sr_head_done(s, st, ended);
    else if (ended && st->exchange && st->exchange->held)
        s->engine->came(s->engine->with, st->exchange, NULL, 0, true);
    else if (ended && sr_tunnel_is(st))
        sr_tunnel_came(st, sr_bytes_of("", 0));
    else if (ended && st->exchange && !st->taken && !st->answered)
        sr_body_over(s, st);
    return 0;
}

/*
 * Whether the client lets more of this stream come. If not, it may be due to it that the last frame was
 * small.
 */
static bool is_open(nghttp2_session *ng, int32_t id)
{
    return nghttp2_session_get_stream_remote_window_size(ng, id) > 0 &&
           nghttp2_session_get_remote_window_size(ng) > 0;
}

static void count_sent(sr_session *s, const nghttp2_frame *f)
{
    sr_counters *count = &s->engine->row->counters;
    if (f->hd.type == NGHTTP2_GOAWAY &&
        f->goaway.last_stream_id != INT32_MAX) /* that one announces another */
        sr_counters_add(&count->goaways, 1);
    if (f->hd.type != NGHTTP2_RST_STREAM)
        return;
    sr_counters_add(&count->streams_reset, f->rst_stream.error_code != NGHTTP2_NO_ERROR);
    sr_numbers_reset(s, f->hd.stream_id);
    sr_flood_reset(s, f->rst_stream.error_code);
}

static int sent(nghttp2_session *ng, const nghttp2_frame *f, void *with)
{
    sr_h2_stream *st = f->hd.stream_id ? nghttp2_session_get_stream_user_data(ng, f->hd.stream_id) : NULL;
    sr_session *s = with;
    count_sent(s, f);
    if (!st || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
        return 0;
    st->sent += SR_FRAME_HEAD + f->hd.length;
    st->body += f->hd.type == NGHTTP2_DATA ? f->hd.length : 0;
    st->moved = true;
    if (!(f->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        if (f->hd.type == NGHTTP2_DATA && (f->hd.length >= LARGE || is_open(ng, st->id)))
            sr_flood_earn(s, EARNS_DATA);
        return 0;
    }
    if (!st->exchange || !st->exchange->refused)
        sr_flood_earn(s, EARNS_RESPONSE);
    st->finished = true;
    if (st->last)
        sr_stream_over(st, SR_OVER_WHOLE);
    if (!st->ended && !st->pump) /* nobody wants the rest of its body (RFC 9113 8.1) */
        sr_session_reset(s, st->id, NGHTTP2_NO_ERROR);
    return 0;
}

static int closed(nghttp2_session *ng, int32_t id, uint32_t error, void *with)
{
    sr_h2_stream *st = nghttp2_session_get_stream_user_data(ng, id);
    (void)with, (void)error;
    if (!st)
        return 0;
    nghttp2_session_set_stream_user_data(ng, id, NULL);
    st->detached = st->exchange && st->finished && (!st->pump || st->exchange->slot);
    if (st->detached) { /* the application has not come to its end */
        st->session->n_detached++;
        if (st->pump && !st->ended) /* a reset: nothing more comes, and it may wait for that */
            sr_stream_drop_pump(st);
        return 0;
    }
    sr_stream_over(st, st->finished ? SR_OVER_WHOLE : SR_OVER_ABORTED);
    sr_stream_free(st);
    return 0;
}

static nghttp2_session_callbacks *callbacks(void)
{
    static nghttp2_session_callbacks *all;
    if (all || nghttp2_session_callbacks_new(&all) != 0)
        return all;
    nghttp2_session_callbacks_set_on_begin_headers_callback(all, begin_head);
    nghttp2_session_callbacks_set_on_header_callback(all, field);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(all, data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(all, received);
    nghttp2_session_callbacks_set_on_frame_send_callback(all, sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(all, closed);
    return all;
}

/* --- the session --- */

static bool settings(sr_session *s)
{
    nghttp2_settings_entry ours[5] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, SR_FLOOD_STREAMS_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, s->engine->config.request.head},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
    };
    size_t n = 3 + sr_h2_priority_settings(ours + 3);
    return nghttp2_submit_settings(s->ng, NGHTTP2_FLAG_NONE, ours, n) == 0 &&
           nghttp2_session_set_local_window_size(s->ng, NGHTTP2_FLAG_NONE, 0, CONN_WINDOW) == 0;
}

/*
 * What nghttp2 limits by itself, where it has an option for that. The limits of flood.h are reached before,
 * except UNREAD_MAX.
 */
static void limits(const sr_session *s, nghttp2_option *option)
{
    (void)s;
#if NGHTTP2_VERSION_NUM >= 0x012900
    nghttp2_option_set_max_outbound_ack(option, UNREAD_MAX);
    nghttp2_option_set_max_settings(option, SETTINGS_MAX);
#endif
#ifdef SR_HTTP2_RESETS
    nghttp2_option_set_stream_reset_rate_limit(option, RESETS_MAX, RESETS_MAX);
#endif
#ifdef SR_HTTP2_CONTINUATIONS
    nghttp2_option_set_max_continuations(option, sr_flood_pieces(s));
#endif
}

/*
 * Heads of responses are limited by the edge, not to the 64 KiB of nghttp2, which would leave the stream
 * without an answer.
 */
static int server_new(sr_session *s)
{
    nghttp2_option *option;
    int err = nghttp2_option_new(&option);
    if (err)
        return err;
    nghttp2_option_set_max_send_header_block_length(option, HEAD_MAX);
    sr_h2_priority_options(option);
    nghttp2_option_set_no_auto_window_update(
        option, 1); /* the client of a tunnel, or a WebSocket, may have to wait */
    limits(s, option);
    nghttp2_mem memory = sr_allocator(s);
    nghttp2_session *ng = NULL;
    err = nghttp2_session_server_new3(&ng, callbacks(), s, option, &memory);
    s->ng = err ? NULL : ng;
    nghttp2_option_del(option);
    return err;
}

bool sr_session_begin(sr_engine *e, sr_conn *c)
{
    sr_session *s = calloc(1, sizeof *s);
    if (!s)
        return false;
    s->engine = e;
    s->conn = c;
    sr_link_init(&s->streams);
    sr_flood_begin(s);
    c->session = s;
    sr_counters_add(&e->row->counters.http2, 1);
    sr_counters_add(&e->row->http2, 1);
    if (!callbacks() || server_new(s) != 0 || !settings(s)) {
        sr_session_free(c);
        return false;
    }
    c->state = SR_CONN_STREAMS;
    c->persists = true;
    sr_session_due(s);
    return true;
}

void sr_session_free(sr_conn *c)
{
    sr_session *s = c->session;
    if (!s)
        return;
    while (!sr_link_alone(&s->streams)) {
        sr_h2_stream *st = SR_LIST_ENTRY(s->streams.next, sr_h2_stream, link);
        sr_stream_over(st, SR_OVER_ABORTED);
        sr_stream_free(st);
    }
    while (!sr_link_alone(&s->run_on))
        sr_link_remove(s->run_on.next);
    sr_link_remove(&c->due);
    sr_counters_add(&s->engine->row->http2, (uint64_t)-1);
    nghttp2_session_del(s->ng);
    sr_head_free(s);
    free(s);
    c->session = NULL;
}

ssize_t sr_session_feed(sr_session *s, sr_bytes in)
{
    size_t len;
    int32_t newest = s->newest;
    if (s->prefaced < PREFACE) {
        len = in.len < PREFACE - s->prefaced ? in.len : PREFACE - s->prefaced;
        s->prefaced += (uint32_t)len;
    } else {
        if (in.len < SR_FRAME_HEAD)
            return 0;
        sr_framehead f = sr_framehead_of(in);
        if (f.payload.len < f.len && f.len <= SR_FRAME_MAX)
            return 0;
        len = SR_FRAME_HEAD +
              f.payload
                  .len; /* what is not here of a larger one, which is an error already, is not waited for */
        if (!sr_flood_frame(s, &f))
            return -1;
        /* nghttp2 does not tell the end of a head that it refuses */
        if (f.type == NGHTTP2_HEADERS || f.type == NGHTTP2_CONTINUATION)
            s->opens = !(f.flags & NGHTTP2_FLAG_END_HEADERS);
        uint32_t error = sr_numbers_wrong(s, &f);
        if (error) {
            nghttp2_session_terminate_session(s->ng, error);
            return -1;
        }
    }
    ssize_t n = nghttp2_session_mem_recv(s->ng, (const uint8_t *)in.at, len);
    if (n == NGHTTP2_ERR_FLOODED)
        sr_flood_unread(s);
    /* refused as it has come, or behind GOAWAY: what follows on it was sent before the client could know */
    if (s->newest != newest && !nghttp2_session_find_stream(s->ng, s->newest))
        sr_numbers_reset(s, s->newest);
    return n == (ssize_t)len && !s->over ? n : -1;
}

/* Appends frames to what goes out, until it is enough or there are none. */
static bool collect(sr_engine *e, sr_session *s)
{
    while (sr_buffer_len(&e->joined.bytes) < BATCH) {
        const uint8_t *at;
        ssize_t n = nghttp2_session_mem_send(s->ng, &at);
        if (n < 0 || (n > 0 && !sr_buffer_add(&e->joined.bytes, at, (size_t)n))) {
            s->over = true;
            return false;
        }
        if (n == 0)
            return false;
        sr_allocator_copied();
    }
    return true;
}

/* What the client has taken, and keeps from being sent. */
typedef struct turn {
    bool moved, blocked;
} turn;

/*
 * Something of its response waits to be sent, if only its end: nghttp2 sends no empty frame either while a
 * window is closed.
 */
static bool has_more(const sr_h2_stream *st)
{
    return (st->out || st->last) && !st->deferred && !st->finished;
}

/*
 * A stream whose window its client does not open is reset after --write-timeout, also when others move. One
 * that waits for others of its connection, which go first, has all the time.
 */
static bool watch_window(sr_h2_stream *st)
{
    sr_engine *e = st->session->engine;
    sr_exchange *x = st->exchange;
    bool stalls = has_more(st) && nghttp2_session_get_stream_remote_window_size(st->session->ng, st->id) <= 0;
    bool runs = x && !sr_link_alone(&x->deadline.link) && x->deadline.kind == SR_DEADLINE_STALL;
    if (st->moved || !stalls)
        st->stalls_at = 0;
    if (!x || !stalls) {
        if (runs)
            sr_deadline_clear_exchange(e, x);
        return stalls;
    }
    if (runs && st->stalls_at) /* its place is found once: each search passes all that stall for less */
        return true;
    if (!st->stalls_at)
        st->stalls_at = e->now;
    sr_deadline_keep_exchange(e, x, SR_DEADLINE_STALL, st->stalls_at + e->config.write_ns);
    return true;
}

/* Workers that wait for their clients go on. What they have sent meanwhile may end any stream. */
static turn tell_workers(sr_engine *e, sr_session *s)
{
    turn t = {false, false};
    s->telling = true;
    for (sr_link *l = s->streams.next; l != &s->streams; l = l->next) {
        sr_h2_stream *st = SR_LIST_ENTRY(l, sr_h2_stream, link);
        t.moved = t.moved || st->moved;
        if (st->moved && st->exchange && (st->exchange->slot || st->exchange->held) && e->drained)
            e->drained(e->with, st->exchange);
        if (st->moved && st->exchange && st->pump)
            sr_tunnel_pumped(e, st->exchange);
    }
    s->telling = false;
    for (sr_link *l = s->streams.next, *next; l != &s->streams; l = next) {
        sr_h2_stream *st = SR_LIST_ENTRY(l, sr_h2_stream, link);
        next = l->next;
        bool stalls = watch_window(st);
        st->moved = false;
        t.blocked = t.blocked || (has_more(st) && !stalls);
        if (st->detached && !st->exchange)
            sr_stream_free(st);
    }
    return t;
}

/* Whether the beginning of a frame is here that is none of a body: that has a limit of its own. */
static bool is_in_frame(const sr_conn *c)
{
    size_t len = sr_buffer_len(&c->in);
    return len && (len < 4 || sr_buffer_at(&c->in)[3] != NGHTTP2_DATA);
}

/*
 * Monotonic ns up to which an idle connection has time, if that is less than --keepalive-timeout;
 * SR_NO_LIMIT: it is not.
 */
static int64_t rests_until(const sr_engine *e, const sr_session *s)
{
    return s->warned || !sr_session_spent(s, 0) ? sr_session_goaway_at(s) : e->now + SR_GOAWAY_NS;
}

/*
 * The limit of the connection, for what it waits for. One that runs for the same goes on, unless there was
 * progress, or a request that was answered since then.
 */
static void limit(sr_engine *e, sr_session *s, turn t, bool progress)
{
    sr_conn *c = s->conn;
    bool running = !sr_link_alone(&c->deadline.link);
    int64_t goaway_at = s->n_streams ? sr_session_goaway_at(s) : SR_NO_LIMIT;
    sr_deadline_kind kind;
    bool served = s->served != c->requests;
    s->served = c->requests;
    if (goaway_at < SR_NO_LIMIT && !c->out)
        kind = SR_DEADLINE_GOAWAY; /* within a second; the limits of what it waits for begin then */
    else if (c->out || t.blocked)
        kind = SR_DEADLINE_WRITE;
    else if (s->opens || is_in_frame(c) || (!c->requests && !s->n_streams && !s->warned))
        kind = SR_DEADLINE_HEAD;
    else if (!s->n_streams)
        kind = SR_DEADLINE_IDLE;
    else
        kind = SR_DEADLINE_KINDS;
    if (!s->n_streams)
        sr_head_free(s);
    int64_t at = kind == SR_DEADLINE_IDLE ? rests_until(e, s) : goaway_at;
    if (running && c->deadline.kind == kind && c->deadline.at <= at &&
        !(kind == SR_DEADLINE_WRITE && progress) && !(kind == SR_DEADLINE_IDLE && served))
        return;
    if (at < SR_NO_LIMIT)
        sr_deadline_keep(e, c, kind, at);
    else if (kind == SR_DEADLINE_KINDS)
        sr_deadline_clear(e, c);
    else if (kind == SR_DEADLINE_WRITE)
        sr_send_stall_watch(e, c);
    else
        sr_deadline_set(e, c, kind);
}

bool sr_session_full(const sr_session *s)
{
    return s->conn->out && nghttp2_session_get_outbound_queue_size(s->ng) > WAITING_MAX;
}

/* All was sent that could be. */
static bool rest(sr_engine *e, sr_session *s, uint64_t before, bool more)
{
    sr_conn *c = s->conn;
    turn t = tell_workers(e, s);
    /*
     * applications have not come to the end of their responses; after an error of the connection, others
     * would be run for nobody
     */
    bool waits = s->n_detached && s->n_detached == s->n_streams;
    bool reads = !s->over &&
                 (waits || nghttp2_session_want_read(s->ng)); /* if only to notice that the client is gone */
    if (!reads && !c->out && !more) {                         /* GOAWAY was sent, and no stream is left */
        sr_session_free(c);
        sr_linger(e, c, c->why);
        return false;
    }
    bool full = sr_session_full(s);
    if (s->paused && !full) {
        s->paused = false;
        sr_link_append(&e->intake.buffered, &c->buffered);
    }
    limit(e, s, t, t.moved || (c->out && c->sent != before)); /* what answers a PING is no progress */
    return sr_conn_watch(e, c, (reads && !full ? EPOLLIN : 0u) | (c->out || more ? EPOLLOUT : 0u));
}

/* The copy of a file may be complete. */
static void look_for_stalled(sr_session *s)
{
    s->stalls = false;
    for (sr_link *l = s->streams.next; l != &s->streams; l = l->next) {
        sr_h2_stream *st = SR_LIST_ENTRY(l, sr_h2_stream, link);
        if (!st->deferred || !st->out)
            continue;
        s->stalls = s->stalls || st->out->stalled;
        st->deferred = st->out->stalled;
        if (!st->deferred)
            sr_session_submitted(s, nghttp2_session_resume_data(s->ng, st->id));
    }
}

bool sr_session_send(sr_engine *e, sr_conn *c)
{
    sr_session *s = c->session;
    uint64_t before = c->sent;
    /*
     * Not at says_close: clients let a request fail that they were about to send, and here load balancers
     * still send some
     */
    if (e->draining || e->retiring)
        sr_session_drain(e, c);
    sr_link_remove(&c->due);
    if (s->stalls)
        look_for_stalled(s);
    switch (sr_send_flush(e, c)) {
    case SR_FLUSH_DONE:
        break;
    case SR_FLUSH_AGAIN:
        return rest(e, s, before, true);
    case SR_FLUSH_SHORT:
    case SR_FLUSH_GONE:
        sr_conn_close(e, c, SR_CLOSED_CLIENT);
        return false;
    }
    bool more = true;
    while (more && !c->out && !c->gone && c->sent - before < TURN) {
        if (e->joined.of)
            sr_joined_flush(e);
        e->joined.of = c;
        more = collect(e, s);
        sr_joined_flush(e);
    }
    if (!more)
        s->informed = 0;
    if (c->gone) {
        sr_conn_close(e, c, c->why);
        return false;
    }
    if (!s->warned && sr_session_spent(s, SR_SPENT_ANYWAY))
        sr_session_drain(e, c);
    if (sr_session_goaway_at(s) <= e->now)
        sr_session_goaway(s);
    return rest(e, s, before, more);
}

#endif
