/*
 * h2session: clients that speak HTTP/2, soundly or not, with streams that are asked for, cancelled, stalled
 * and cut short at any moment, frames in any pieces, while workers end or break the rules, time goes by,
 * memory, disk or descriptors are short, and the edge stops. Each stream gets the whole response to its own
 * request, or is seen to be cut; undisturbed, all are whole; a request that was cancelled before a worker has
 * begun is never begun; what the edge counts is there after each step; and nothing is missing at the end.
 * Judges: src/conn/parting.c src/h2/flood.c src/h2/numbers.c src/h2/priority.c src/h2/put.c src/h2/read.c
 * src/h2/refuse.c src/h2/request.c src/h2/allocator.c src/h2/session.c src/h2/state.c src/h2/tunnel.c
 *
 * Input: operations, a byte each with the bytes that it needs after it; see h2session_operation.
 */
#ifdef SR_HTTP2
#include "acts.h"
#include "h2/state.h"
#include "memory.h"

enum { H2SESSION_QUEUE = 100, H2SESSION_CLIENTS = 3, H2SESSION_BODIES = 8, H2SESSION_KNOWN = 128 };

/* A body that the client has not ended */
typedef struct h2session_body {
    int32_t stream; /* 0: none */
    unsigned id;
    size_t sent, length; /* length SIZE_MAX: it was not announced */
} h2session_body;

typedef struct h2session_client {
    moments_client k;
    h2session_body bodies[H2SESSION_BODIES];
    size_t hold; /* bytes that are sent at a time; 0: all */
    bool odd;    /* it has broken a rule: anything may come of its requests */
} h2session_client;

static h2session_client h2session_clients[H2SESSION_CLIENTS];
/* the queue has been full, so that any request may be refused: they have 128 streams each */
static bool h2session_crowded;
static unsigned h2session_id;

/* What is known of the requests of late */
static struct {
    unsigned id;
    uint16_t name; /* of its client */
    int32_t stream;
    bool odd;  /* anything may come of it */
    bool seen; /* the edge had it */
    bool gone; /* and has it no more */
} h2session_known[H2SESSION_KNOWN];

static sr_conn *h2session_conn(uint16_t name)
{
    const sr_link *all = &moments_edge->engine->all;
    for (sr_link *l = all->next; l != all; l = l->next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        if (c->peer.port == name)
            return c;
    }
    return NULL;
}

static bool h2session_has(const sr_conn *c, int32_t id)
{
    if (!c || c->state != SR_CONN_STREAMS)
        return false;
    const sr_link *all = &sr_session_of(c)->streams;
    for (sr_link *l = all->next; l != all; l = l->next)
        if (SR_LIST_ENTRY(l, sr_h2_stream, link)->id == id)
            return true;
    return false;
}

static void h2session_begins(unsigned id)
{
    for (int i = 0; i < H2SESSION_KNOWN; i++)
        MUST(h2session_known[i].id != id || !h2session_known[i].gone);
}

static bool h2session_is_odd(unsigned id)
{
    for (int i = 0; i < H2SESSION_KNOWN; i++)
        if (h2session_known[i].id == id)
            return h2session_known[i].odd;
    return true;
}

/* --- what must hold after each step --- */

/* What waits for applications, and sockets that they have, of all connections */
static size_t h2session_passing;
static uint64_t h2session_lent;

static size_t h2session_conn_check(const sr_conn *c)
{
    size_t memory = c->out ? sr_output_memory(c->out) : 0;
    uint32_t n = 0, exchanges = 0, owned = 0, detached = 0;
    size_t heads = 0, passing = 0;
    if (c->state != SR_CONN_STREAMS)
        return memory;
    const sr_session *s = sr_session_of(c);
    for (sr_link *l = s->streams.next; l != &s->streams; l = l->next) {
        const sr_h2_stream *st = SR_LIST_ENTRY(l, sr_h2_stream, link);
        MUST(st->session == s && st->id > 0);
        MUST(!st->exchange || (st->exchange->conn == c && st->exchange->stream == st));
        memory += st->out ? sr_output_memory(st->out) : 0;
        heads += sr_buffer_len(&st->head);
        MUST(!st->pump || st->pump->exchange == st->exchange);
        passing += st->pump ? sr_buffer_len(&st->pump->up) : 0;
        h2session_lent += st->pump && st->pump->source.fd >= 0;
        n++;
        owned += st->exchange != NULL;
        detached += st->detached;
    }
    for (const sr_exchange *x = c->exchange; x; x = x->older) {
        exchanges++;
        MUST(!x->slot || moments_edge->entries[x->slot - 1].exchange == x);
    }
    MUST(n == s->n_streams && detached == s->n_detached && heads == s->heads && exchanges == owned &&
         (!s->complete || s->over) && !s->telling && passing == s->passing);
    h2session_passing += passing;
    return memory;
}

static void h2session_check(void)
{
    const sr_link *all = &moments_edge->engine->all;
    size_t memory = 0;
    h2session_passing = h2session_lent = 0;
    const sr_link *partings = &moments_edge->engine->partings;
    for (const sr_link *l = partings->next; l != partings; l = l->next) {
        const sr_pump *p = SR_LIST_ENTRY(l, sr_pump, parting);
        MUST(!p->conn && !p->exchange && sr_buffer_len(&p->up));
        h2session_passing += sr_buffer_len(&p->up);
        h2session_lent++;
    }
    for (sr_link *l = all->next; l != all; l = l->next)
        memory += h2session_conn_check(SR_LIST_ENTRY(l, sr_conn, all));
    MUST(memory == moments_edge->engine->pending && h2session_passing == moments_edge->engine->passing &&
         h2session_lent == moments_edge->engine->n_lent);
    for (int i = 0; i < H2SESSION_KNOWN; i++) {
        if (!h2session_known[i].id)
            continue;
        bool has = h2session_has(h2session_conn(h2session_known[i].name), h2session_known[i].stream);
        h2session_known[i].gone = h2session_known[i].gone || (h2session_known[i].seen && !has);
        h2session_known[i].seen = h2session_known[i].seen || has;
    }
}

static void h2session_steps(int n)
{
    while (moments_lives && n-- > 0) {
        moments_steps(1);
        if (moments_lives)
            h2session_check();
        h2session_crowded =
            h2session_crowded || (moments_lives && sr_slots_used(moments_edge) >= H2SESSION_QUEUE / 2);
    }
}

/* --- clients --- */

static void h2session_forget(moments_client *k, unsigned i)
{
    h2wire_forget(k->h2, k->asked[i].stream);
    moments_answered(k, i);
}

/* Judges all that has come. */
static void h2session_look(h2session_client *h)
{
    moments_client *k = &h->k;
    int status;
    if (!k->h2)
        return;
    for (unsigned i = 0; i < k->n;) {
        const moments_shape *shape = k->asked[i].shape;
        int32_t stream = k->asked[i].stream;
        bool odd =
            h->odd || k->h2->blind || !moments_calm || h2session_crowded || h2session_is_odd(k->asked[i].id);
        moments_verdict v = k->h2->blind ? V_NOTHING : moments_h2_judge(k, i, &status);
        MUST(v != V_WRONG);
        if (v == V_REFUSED)
            MUST(status >= 400 && (odd || shape->record[0] == R_CUT || shape->record[0] == R_UNREAD));
        if (v == V_WHOLE || v == V_REFUSED)
            continue;
        if (!moments_h2_over(k, stream)) {
            i++;
            continue;
        }
        MUST(odd || moments_count(shape, R_CUT) || (k->h2->goaways && stream > k->h2->last));
        h2session_forget(k, i);
    }
}

static void h2session_leave(h2session_client *h)
{
    moments_leave(&h->k);
    *h = (h2session_client){.k = {.fd = -1}};
}

static void h2session_come(h2session_client *h, bool wide)
{
    if (h->k.fd >= 0 && !h->k.ended)
        return;
    h2session_leave(h);
    moments_connect(&h->k);
    moments_h2(&h->k, wide);
}

static h2session_body *h2session_body_at(h2session_client *h, uint8_t which)
{
    for (int i = 0; i < H2SESSION_BODIES; i++) {
        h2session_body *b = &h->bodies[(which + i) % H2SESSION_BODIES];
        if (b->stream)
            return b;
    }
    return NULL;
}

static void h2session_no_body(h2session_client *h, int32_t stream)
{
    for (int i = 0; i < H2SESSION_BODIES; i++)
        if (h->bodies[i].stream == stream)
            h->bodies[i].stream = 0;
}

static void h2session_make_odd(unsigned id)
{
    for (int i = 0; i < H2SESSION_KNOWN; i++)
        if (h2session_known[i].id == id)
            h2session_known[i].odd = true;
}

static void h2session_know(const h2session_client *h, unsigned id, int32_t stream, bool odd)
{
    unsigned at = id % H2SESSION_KNOWN;
    h2session_known[at].id = id;
    h2session_known[at].name = h->k.name;
    h2session_known[at].stream = stream;
    h2session_known[at].seen = h2session_known[at].gone = false;
    h2session_known[at].odd = odd;
}

/*
 * A tunnel, by extended CONNECT: what comes of it is not judged. Its bytes are those of a body. `how` as
 * below: 2 it is a WebSocket.
 */
static void h2session_tunnel(h2session_client *h, h2session_body *b, uint8_t how)
{
    moments_client *k = &h->k;
    char path[40];
    unsigned id = ++h2session_id;
    int32_t stream = k->next;
    if (stream / 2 >= H2WIRE_IDS)
        return;
    k->next += 2;
    snprintf(path, sizeof path, "/%u.%d", id, MOMENTS_TAKEN);
    nghttp2_nv nv[7] = {
        h2wire_field(":method", "CONNECT"),      h2wire_field(":protocol", how & 2 ? "websocket" : "a"),
        h2wire_field(":scheme", "http"),         h2wire_field(":path", path),
        h2wire_field(":authority", "a"),         h2wire_field("sec-websocket-version", how & 8 ? "12" : "13"),
        h2wire_field("sec-websocket-key", "own")};
    h2wire_head(k->h2, stream, how & 32 ? NGHTTP2_FLAG_END_STREAM : 0, nv, how & 16 ? 7 : 6,
                how & 4 ? 16 : 0);
    k->h2->cancelled[stream / 2] = true; /* nothing of it is kept */
    if (b && !(how & 32))
        *b = (h2session_body){stream, id, 0, SIZE_MAX};
    h2session_know(h, id, stream, true);
}

/*
 * `how`: 1 a body follows, 2 its length is announced, 4 in CONTINUATION frames, 8 Expect, 16 cookies, 32 a
 * priority, 128 it is a tunnel.
 */
static void h2session_ask(h2session_client *h, const moments_shape *shape, uint8_t how, uint8_t more)
{
    moments_client *k = &h->k;
    h2session_body *b = NULL;
    char path[40], length[24];
    for (int i = 0; how & 1 && i < H2SESSION_BODIES; i++)
        if (!h->bodies[i].stream)
            b = &h->bodies[i];
    if (how & 128) {
        h2session_tunnel(h, b, how);
        return;
    }
    if (b && *shape->method == 'H')
        shape = &moments_shapes[MOMENTS_SHAPES_1];
    unsigned id = ++h2session_id;
    if (!moments_asked(k, id, shape))
        return;
    int32_t stream = k->asked[k->n - 1].stream = k->next;
    k->next += 2;
    snprintf(path, sizeof path, "/%u.%d", id, (int)(shape - moments_shapes));
    nghttp2_nv nv[12] = {h2wire_field(":method", b ? "POST" : shape->method), h2wire_field(":scheme", "http"),
                         h2wire_field(":path", path), h2wire_field(":authority", "a")};
    size_t n = 4, bytes = more * 8u;
    snprintf(length, sizeof length, "%zu", bytes);
    if (b && how & 2)
        nv[n++] = h2wire_field("content-length", length);
    if (b && how & 8)
        nv[n++] = h2wire_field("expect", "100-continue");
    for (int i = 0; how & 16 && i < 4; i++)
        nv[n++] = h2wire_field("cookie", "a=b");
    if (how & 32)
        nv[n++] = h2wire_field("priority", more & 1 ? "u=1, i" : "u=6");
    h2wire_head(k->h2, stream, b ? 0 : NGHTTP2_FLAG_END_STREAM, nv, n, how & 4 ? 16 + more % 16u : 0);
    if (b)
        *b = (h2session_body){stream, id, 0, how & 2 ? bytes : SIZE_MAX};
    h2session_know(h, id, stream, b && how & 2 && bytes > 1000); /* max_body */
}

/* So many bytes more of a body. */
static void h2session_data(h2session_client *h, h2session_body *b, size_t n, bool ends, bool trailers)
{
    char bytes[2048];
    const nghttp2_nv tail = h2wire_field("x-tail", "b");
    n = n < sizeof bytes ? n : sizeof bytes;
    for (size_t i = 0; i < n; i++)
        bytes[i] = moments_byte(b->id, b->sent + i);
    b->sent += n;
    if (n || !trailers)
        h2wire_frame(h->k.h2, NGHTTP2_DATA, ends && !trailers ? NGHTTP2_FLAG_END_STREAM : 0, b->stream, bytes,
                     n);
    if (ends && trailers)
        h2wire_head(h->k.h2, b->stream, NGHTTP2_FLAG_END_STREAM, &tail, 1, 0);
    if (b->sent > 1000 || (b->length != SIZE_MAX && (b->sent > b->length || (ends && b->sent != b->length))))
        h2session_make_odd(b->id);
    if (ends)
        b->stream = 0;
}

static void h2session_cancel(h2session_client *h, unsigned i, uint32_t error)
{
    int32_t stream = h->k.asked[i].stream;
    h2wire_cancel(h->k.h2, stream, error);
    h2session_no_body(h, stream);
    h2session_forget(&h->k, i);
}

/* A frame of any type, of which the tables of HPACK know nothing, on a stream that may be there. */
static void h2session_any_frame(h2session_client *h, moments_input *in)
{
    static const uint8_t types[] = {NGHTTP2_DATA,
                                    NGHTTP2_PRIORITY,
                                    NGHTTP2_RST_STREAM,
                                    NGHTTP2_SETTINGS,
                                    NGHTTP2_PING,
                                    NGHTTP2_GOAWAY,
                                    16,
                                    NGHTTP2_ALTSVC,
                                    NGHTTP2_WINDOW_UPDATE,
                                    NGHTTP2_PUSH_PROMISE,
                                    99,
                                    NGHTTP2_CONTINUATION,
                                    NGHTTP2_HEADERS};
    uint8_t type = types[moments_take_byte(in) % sizeof types], flags = moments_take_byte(in),
            which = moments_take_byte(in), len = moments_take_byte(in), bytes[256];
    const moments_client *k = &h->k;
    int32_t stream = which < 128 ? which : k->n ? k->asked[which % k->n].stream : 0;
    for (uint8_t i = 0; i < len; i++)
        bytes[i] = moments_take_byte(in);
    if (type == NGHTTP2_PUSH_PROMISE || type == NGHTTP2_CONTINUATION || type == NGHTTP2_HEADERS ||
        type == NGHTTP2_SETTINGS)
        k->h2->blind = true;
    moments_any_body = true;
    h->odd = true;
    h2wire_frame(k->h2, type, flags, stream, bytes, len);
}

static void h2session_control(h2session_client *h, uint8_t what, uint8_t n)
{
    static const uint32_t windows[] = {0, 1, 100, 5000, 65535, 1 << 20, 0, INT32_MAX};
    h2wire *w = h->k.h2;
    switch (what % 8) {
    case 0:
        h2wire_setting(w, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, windows[n % 7]);
        return;
    case 1:
        h2wire_setting(w, NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 16384 + n);
        return;
    case 2:
        for (int i = 0; i < n; i++)
            h2wire_frame(w, NGHTTP2_PING, 0, 0, "12345678", 8);
        h->odd = h->odd || n > 30; /* it may be called a flood */
        return;
    case 3:
        for (int i = 0; i < n; i++)
            h2wire_frame(w, NGHTTP2_SETTINGS, 0, 0, NULL, 0);
        h->odd = h->odd || n > 30;
        return;
    case 4:
        h2wire_goaway(w, 0, n & 1 ? NGHTTP2_NO_ERROR : NGHTTP2_INTERNAL_ERROR);
        h->odd = true; /* when it has no stream, the edge closes the connection */
        return;
    case 5:
        h2wire_frame(w, 16, 0, 0, "\0\0\0\1u=1", 7);
        return;
    case 6:
        if (h->k.n)
            h2wire_frame(w, NGHTTP2_PRIORITY, 0, h->k.asked[n % h->k.n].stream, "\0\0\0\0\20", 5);
        return;
    case 7: /* a window of more than 2^31 - 1 is an error */
        h2wire_with(w, NGHTTP2_WINDOW_UPDATE, n & 1 || !h->k.n ? 0 : h->k.asked[n / 2 % h->k.n].stream,
                    windows[n % 8]);
        h->odd = h->odd || n % 8 == 7 || !windows[n % 8];
        return;
    }
}

static void h2session_client_acts(moments_input *in, uint8_t op)
{
    static const size_t amounts[] = {1, 200, 5000, 1 << 20}, holds[] = {0, 1, 2, 9, 10, 30, 100, 1000};
    h2session_client *h = &h2session_clients[op % H2SESSION_CLIENTS];
    uint8_t what = moments_take_byte(in), how = moments_take_byte(in);
    moments_client *k = &h->k;
    h2session_body *b;
    h2session_come(h, !(how & 64));
    switch (what % 16) {
    case 0:
    case 1:
    case 2:
        h2session_ask(h, &moments_shapes[MOMENTS_SHAPES_1 + what / 16 % (MOMENTS_SHAPES - MOMENTS_SHAPES_1)],
                      how, moments_take_byte(in));
        break;
    case 3:
    case 4:
        if ((b = h2session_body_at(h, what / 16)))
            h2session_data(h, b, how % 64 * 8u, how & 64, how & 128);
        break;
    case 5:
        if ((b = h2session_body_at(h, what / 16)))
            h2session_data(h, b, b->length == SIZE_MAX ? how : b->length - b->sent, true, how & 1);
        break;
    case 6:
        if (k->n)
            h2session_cancel(h, how % k->n, what & 16 ? NGHTTP2_CANCEL : NGHTTP2_PROTOCOL_ERROR);
        break;
    case 7:
    case 8:
        h2session_control(h, what / 16, how);
        break;
    case 9:
        h2session_any_frame(h, in);
        break;
    case 10:
    case 11:
        moments_read(k, amounts[how % 4]);
        h2session_look(h);
        break;
    case 12:
        if (how % 4) {
            moments_read(k, 1 << 20);
            h2session_leave(h);
            return;
        }
        h->odd = true;
        shutdown(k->fd, SHUT_WR);
        return;
    case 13:
        h->odd = k->h2->blind = moments_any_body = true;
        for (uint8_t i = 0; i < how; i++) {
            uint8_t byte = moments_take_byte(in);
            h2wire_bytes(k->h2, &byte, 1);
        }
        break;
    case 14:
        h->hold = holds[how % 8];
        break;
    case 15: /* the same streams all over: rapid reset */
        for (int i = 0; i < how % 8; i++) {
            h2session_ask(h, &moments_shapes[MOMENTS_SHAPES_1], 0, 0);
            if (k->n)
                h2session_cancel(h, k->n - 1, NGHTTP2_CANCEL);
        }
        break;
    }
    moments_h2_send(k, h->hold ? h->hold : SIZE_MAX);
}

/* --- the rest --- */

/* Steps while allocations fail. */
static void h2session_memory(uint8_t how, uint8_t n)
{
    moments_calm = false;
    fuzz_memory_short(1 + n, how & 1);
    moments_steps(1 + how / 2 % 2);
    fuzz_memory_enough();
    if (moments_lives)
        h2session_check();
}

static void h2session_operation(moments_input *in)
{
    uint8_t op = moments_take_byte(in);
    switch (op % 8) {
    case 0:
    case 1:
    case 2:
        h2session_client_acts(in, op / 8);
        break;
    case 3:
    case 4:
        moments_worker_acts(in, op / 8);
        break;
    case 5:
        moments_time_goes(op / 8);
        break;
    case 6:
        h2session_steps(1 + op / 8 % 3);
        return;
    case 7:
        if (op > 191)
            moments_short(op / 8);
        else if (op > 127)
            h2session_memory(op / 8, moments_take_byte(in));
        else if (op > 119)
            moments_edge->engine->says_close = true;
        else
            moments_ends(moments_take_byte(in));
        break;
    }
    if (op & 128)
        h2session_steps(1);
}

/*
 * The client has nothing against the end of its streams: it opens its windows, and ends or cancels its
 * bodies.
 */
static void h2session_ends(h2session_client *h)
{
    h2session_body *b;
    if (h->k.fd < 0 || h->k.ended)
        return;
    h->hold = 0;
    while ((b = h2session_body_at(h, 0)))
        h2session_data(h, b, b->length == SIZE_MAX || b->length < b->sent ? 0 : b->length - b->sent, true,
                       false);
    h2wire_setting(h->k.h2, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 28);
    h2wire_with(h->k.h2, NGHTTP2_WINDOW_UPDATE, 0, 1 << 28);
}

static void h2session_come_to_an_end(void)
{
    bool more = true;
    moments_inside = NULL;
    for (int i = 0; i < H2SESSION_CLIENTS; i++)
        h2session_ends(&h2session_clients[i]);
    for (int turn = 0; moments_lives && more && turn < 400; turn++) {
        more = false;
        moments_workers_go_on();
        moments_heir_reads();
        h2session_steps(1);
        for (int i = 0; i < H2SESSION_CLIENTS; i++) {
            h2session_client *h = &h2session_clients[i];
            if (!h->k.h2)
                continue;
            moments_read(&h->k, 1 << 20);
            moments_h2_send(&h->k, SIZE_MAX);
            h2session_look(h);
            more = more || (h->k.fd >= 0 && !h->k.ended && h->k.n && !h->k.h2->blind && !h->odd);
        }
        more = more || (moments_lives && sr_slots_used(moments_edge));
        moments_wait(30 * SR_MILLISECOND);
    }
    MUST(!moments_lives || moments_edge->stop.begun || moments_edge->engine->retiring || !more);
}

FUZZ_TARGET(h2session)
{
    moments_input in = {data, data + size};
    moments_play();
    moments_edge->engine->config.max_queue = H2SESSION_QUEUE;
    h2session_crowded = false;
    moments_any_body = false;
    moments_on_begin = h2session_begins;
    memset(h2session_known, 0, sizeof h2session_known);
    for (int i = 0; i < H2SESSION_CLIENTS; i++)
        h2session_clients[i] = (h2session_client){.k = {.fd = -1}};
    while (moments_lives && in.at < in.end)
        h2session_operation(&in);
    h2session_come_to_an_end();
    if (!moments_lives)
        sr_stop_end(moments_edge);
    for (int i = 0; i < H2SESSION_CLIENTS; i++) {
        moments_read(&h2session_clients[i].k, 1 << 20);
        h2session_look(&h2session_clients[i]);
        h2session_leave(&h2session_clients[i]);
    }
    moments_is_over();
    moments_on_begin = NULL;
    moments_any_body = false;
    return 0;
}

#else

#include "fuzz.h"

FUZZ_TARGET(h2session)
{
    (void)data;
    (void)size;
    return 0;
}

#endif
