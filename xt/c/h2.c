/*
 * h2: sessions of HTTP/2 frame by frame: an edge in this process with one worker, a clock that the test
 * turns, and a client that sends any frame in any pieces.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tap.h"

#ifdef SR_HTTP2
#include "../../fuzz/memory.h"
#include "../../fuzz/moments.h"
#include "h2/state.h"

enum { BODY = 100, LARGE = 8192 };

static moments_client client;
static unsigned ids;

static const moments_shape *shape_of(const char *name)
{
    for (int s = MOMENTS_SHAPES_1; s < MOMENTS_SHAPES; s++)
        if (strcmp(moments_shapes[s].name, name) == 0)
            return &moments_shapes[s];
    MUST(false);
    return NULL;
}

static void settle(void)
{
    for (int i = 0; i < 8; i++) {
        moments_h2_send(&client, SIZE_MAX);
        if (!moments_step())
            return;
        moments_read(&client, 1 << 20);
    }
}

static void open_edge(void)
{
    moments_begin();
    moments_hello(0);
}

static void open_client(bool wide)
{
    moments_connect(&client);
    moments_h2(&client, wide);
}

static void open_both(void)
{
    open_edge();
    open_client(true);
}

/* The client leaves, and nothing is missing. */
static void close_client(const char *name)
{
    const sr_engine *e = moments_edge->engine;
    bool right = !client.h2->wrong;
    if (!right)
        printf("# %s\n", client.h2->wrong);
    moments_leave(&client);
    for (int i = 0; i < 12; i++) { /* a claim that nobody stands by is doubted for a while */
        moments_wait(SR_SECOND);
        moments_step();
    }
    ok(right && !e->n_conns && !e->pending && moments_edge->queue.n_free == moments_edge->slots &&
           sr_link_alone(&moments_edge->abandoned),
       "%s: nothing is left", name);
}

static void close_both(const char *name)
{
    close_client(name);
    moments_die(0);
    moments_died(0);
    moments_end();
    const char *told = moments_told();
    ok(!strstr(told, " broken "), "%s: and the worker is not blamed", name);
    MUST(ftruncate(moments_log, 0) == 0);
}

/* Whatever the server has told of its worker, which was killed. */
static void end_edge(void)
{
    moments_end();
    moments_told();
    MUST(ftruncate(moments_log, 0) == 0);
}

static int32_t ask(const char *shape)
{
    return moments_h2_ask(&client, ++ids, shape_of(shape), true);
}

/* A new edge, with a client whose request a worker has. */
static void open_taken(void)
{
    open_both();
    ask("h2 length");
    settle();
    MUST(moments_take(0));
}

/* The first that was asked for, undisturbed */
static bool is_whole(void)
{
    int status;
    return moments_judge(&client, &status) == V_WHOLE;
}

/*
 * A worker that has to wait for room in its ring wakes the edge first. Without leases the bytes of a file are
 * there, too.
 */
static bool made_room(void)
{
    if (!moments_workers[0].shape)
        return false;
    sr_worker_flush(&moments_workers[0].w);
    settle();
    return moments_write(0);
}

static bool serve(void)
{
    bool any = moments_take(0);
    while (moments_write(0) || made_room())
        settle();
    settle();
    return any;
}

static const h2wire_reply *reply(int32_t id)
{
    static const h2wire_reply none;
    const h2wire_reply *r = h2wire_find(client.h2, id);
    return r ? r : &none;
}

static sr_session *session(void)
{
    const sr_link *all = &moments_edge->engine->all;
    return sr_link_alone(all) ? NULL : sr_session_of(SR_LIST_ENTRY(all->next, sr_conn, all));
}

/* HEADERS of a POST, with a Content-Length unless that is negative */
static int32_t post(long length, bool ends)
{
    char path[40], number[24];
    moments_asked(&client, ++ids, shape_of("h2 whole"));
    int32_t stream = client.asked[client.n - 1].stream = client.next;
    client.next += 2;
    snprintf(path, sizeof path, "/%u.%d", ids, MOMENTS_SHAPES_1);
    snprintf(number, sizeof number, "%ld", length);
    const nghttp2_nv nv[] = {h2wire_field(":method", "POST"), h2wire_field(":scheme", "http"),
                             h2wire_field(":path", path), h2wire_field(":authority", "a"),
                             h2wire_field("content-length", number)};
    h2wire_head(client.h2, stream, ends ? NGHTTP2_FLAG_END_STREAM : 0, nv, length < 0 ? 4 : 5, 0);
    return stream;
}

/* So many bytes of the body of the newest request, from there on */
static void body(int32_t stream, size_t from, size_t n, bool ends)
{
    char bytes[LARGE];
    for (size_t i = 0; i < n; i++)
        bytes[i] = moments_byte(ids, from + i);
    h2wire_frame(client.h2, NGHTTP2_DATA, ends ? NGHTTP2_FLAG_END_STREAM : 0, stream, bytes, n);
}

static void trailers(int32_t stream)
{
    const nghttp2_nv nv = h2wire_field("x-tail", "b");
    h2wire_head(client.h2, stream, NGHTTP2_FLAG_END_STREAM, &nv, 1, 0);
}

/* --- pieces --- */

/*
 * A conversation of three requests; the client sends so many bytes first, then the rest, or `each` at a time.
 */
static size_t pieces(size_t first, size_t each)
{
    open_client(true);
    ask("h2 whole");
    int32_t id = post(BODY, false);
    body(id, 0, BODY, true);
    ask("h2 HEAD");
    size_t all = client.h2->out_len;
    moments_h2_send(&client, first);
    for (int i = 0; i < 3; i++)
        moments_step();
    while (client.h2->out_len) {
        size_t before = client.h2->out_len;
        moments_h2_send(&client, each);
        MUST(client.h2->out_len < before);
        moments_step();
    }
    settle();
    int whole = 0;
    while (serve())
        ;
    while (client.n && is_whole())
        whole++;
    if (whole != 3 || client.h2->wrong)
        ok(false, "%zu bytes, then %zu at a time: %d of 3, %s", first, each, whole,
           client.h2->wrong ? client.h2->wrong : "");
    moments_leave(&client);
    settle();
    return all;
}

static void splits(void)
{
    open_edge();
    open_client(true);
    moments_leave(&client);
    size_t all = pieces(0, SIZE_MAX);
    for (size_t at = 1; at < all; at++)
        pieces(at, SIZE_MAX);
    ok(true, "three requests, cut in two at each of %zu bytes, the preface included", all);
    pieces(0, 1);
    pieces(0, 2);
    pieces(7, 9);
    ok(true, "byte by byte, and in other pieces");
    open_client(true);
    close_both("pieces");
}

/* What begins as the preface does, and is none */
static void no_preface(void)
{
    static const char *const texts[] = {"PUT /", "PRI * HTTP/2.0\r\n\r\nSM\r\n\rX", "PRI * HTTP/1.1\r\n"};
    static const char *const names[] = {"PUT, byte by byte", "a preface with a wrong end", "one of HTTP/1.1"};
    open_edge();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[100];
        open_client(true);
        for (const char *at = texts[i]; *at; at++) {
            MUST(syscall(SYS_sendto, client.fd, at, 1, MSG_NOSIGNAL, NULL, 0) == 1);
            moments_step();
        }
        for (int j = 0; i && j < 6; j++)
            moments_step();
        ssize_t n = recv(client.fd, text, sizeof text, MSG_DONTWAIT);
        ok(i ? n == 0 || (n > 12 && memcmp(text, "HTTP/1.1 ", 9) == 0 && (text[9] == '4' || text[9] == '5'))
             : n < 0,
           "%s: %s", names[i], i ? "refused" : "more may come");
        moments_leave(&client);
        settle();
    }
    open_client(true);
    close_both("no preface");
}

/* A client that says nothing until --header-timeout is over, and asks before the edge has looked. */
static void silent(void)
{
    for (int way = 0; way < 4; way++) {
        bool http2 = way & 1, noticed = way & 2;
        open_edge();
        moments_connect(&client);
        if (http2)
            moments_h2(&client, true);
        settle();
        moments_wait(100 * SR_SECOND + SR_MILLISECOND);
        if (noticed) /* its clock has reached the limit, and what comes now is read after that */
            moments_step();
        if (http2)
            ask("h2 length");
        else
            moments_ask(&client, ++ids, &moments_shapes[0]);
        settle();
        while (serve())
            ;
        moments_read(&client, 1 << 20);
        ok(is_whole(), "a request that comes as --header-timeout ends, in HTTP/%d, %s", 1 + http2,
           noticed ? "behind" : "before");
        moments_leave(&client);
        moments_die(0);
        end_edge();
    }
}

/* --- bodies --- */

static void bodies(void)
{
    open_both();
    int32_t id = post(-1, false);
    body(id, 0, 40, false);
    settle();
    ok(!moments_take(0), "a body that has not ended keeps its request");
    body(id, 40, 60, false);
    h2wire_frame(client.h2, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, id, NULL, 0);
    settle();
    ok(serve() && is_whole(), "it ends with an empty DATA frame");
    id = post(BODY, false);
    body(id, 0, BODY, false);
    trailers(id);
    settle();
    ok(serve() && is_whole(), "or with trailers");
    post(0, true);
    settle();
    ok(serve() && is_whole(), "an empty one, with its length");
    id = post(BODY, false);
    body(id, 0, 50, true);
    settle();
    ok(!moments_take(0) && reply(id)->reset, "shorter than its Content-Length: reset");
    moments_answered(&client, 0);
    id = post(BODY, false);
    body(id, 0, BODY + 1, true);
    settle();
    ok(!moments_take(0) && reply(id)->reset, "longer: reset");
    moments_answered(&client, 0);
    id = post(BODY, true);
    settle();
    ok(!moments_take(0) && reply(id)->reset, "none at all: reset");
    moments_answered(&client, 0);
    id = post(-1, false);
    body(id, 0, 1001, true);
    settle();
    ok(!moments_take(0) && reply(id)->status == 413 && reply(id)->ended, "larger than max-body: 413");
    moments_answered(&client, 0);
    id = post(1001, false);
    settle();
    ok(!moments_take(0) && reply(id)->status == 413 && reply(id)->ended && reply(id)->reset &&
           reply(id)->error == NGHTTP2_NO_ERROR,
       "announced so: 413 at once, and the client is told to stop");
    moments_answered(&client, 0);
    ask("h2 whole");
    settle();
    ok(serve() && is_whole() && !client.h2->goaways, "the connection goes on");
    id = ask("h2 whole");
    settle();
    body(id, 0, 5, true);
    settle();
    ok(client.ended || client.h2->goaways || reply(id)->reset, "DATA behind END_STREAM is an error");
    client.n = 0;
    close_both("bodies");
}

/* --- responses --- */

static void responses(void)
{
    open_both();
    moments_edge->engine->config.informational = SR_INFORMATIONAL_ON; /* the socket is a unix one */
    int32_t id = ask("h2 hint");
    settle();
    MUST(serve());
    ok(reply(id)->interims == 2 && is_whole(), "two 103, then the response");
    id = ask("h2 HEAD");
    settle();
    MUST(serve());
    ok(reply(id)->len == 0 && is_whole(), "HEAD has no body");
    id = ask("h2 file");
    settle();
    MUST(serve());
    ok(reply(id)->length == (long long)reply(id)->len && is_whole(), "a file");
    id = ask("h2 cut length");
    settle();
    MUST(serve());
    ok(reply(id)->reset && !reply(id)->ended, "one that is cut ends with RST_STREAM");
    moments_answered(&client, 0);
    /* shorter than its length */
    sr_worker *w = &moments_workers[0].w;
    id = ask("h2 whole");
    settle();
    MUST(moments_take(0));
    sr_reply_head head = {.status = 200, .length = 100, .app_length = SR_REPLY_LENGTH_UNKNOWN};
    sr_worker_reply(w, &head, (sr_bytes){"", 0}, &(struct iovec){(void *)"half", 4}, 1, 0);
    sr_worker_flush(w);
    settle();
    sr_worker_say(w, SR_REPLY_END);
    sr_worker_done(w);
    moments_workers[0].shape = NULL;
    settle();
    ok(reply(id)->status == 200 && reply(id)->len == 4 && reply(id)->reset && !reply(id)->ended,
       "one that is shorter than its Content-Length, too");
    moments_answered(&client, 0);
    /* without a body */
    id = ask("h2 whole");
    settle();
    MUST(moments_take(0));
    head = (sr_reply_head){.status = 204, .length = 0, .app_length = SR_REPLY_LENGTH_UNKNOWN};
    sr_worker_reply(w, &head, (sr_bytes){"", 0}, NULL, 0, SR_REPLY_LAST);
    sr_worker_done(w);
    moments_workers[0].shape = NULL;
    settle();
    ok(reply(id)->status == 204 && reply(id)->ended && !reply(id)->len && reply(id)->length < 0,
       "one without a body");
    moments_answered(&client, 0);
    ok(session() && session()->n_streams == 0, "no stream is left");
    close_both("responses");
}

/* --- cancels --- */

static void cancels(void)
{
    static const char *const when[] = {"while its body comes", "in the queue", "with a worker",
                                       "within its response",  "behind it",    "while its response waits"};
    for (int i = 0; i < 6; i++) {
        open_edge();
        open_client(i != 5);
        int32_t id = i == 0 ? post(BODY, false) : ask(i == 5 ? "h2 file" : "h2");
        if (i == 5)
            h2wire_setting(client.h2, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
        settle();
        if (i >= 2)
            MUST(moments_take(0));
        for (int n = 0; n < (i == 3 ? 2 : i > 3 ? 9 : 0) && moments_write(0); n++) {
            if (moments_workers[0].shape)
                sr_worker_flush(&moments_workers[0].w);
            settle();
        }
        bool before = reply(id)->len > 0;
        h2wire_cancel(client.h2, id, NGHTTP2_CANCEL);
        client.n = 0;
        settle();
        ok(session()->n_streams == 0 && (i == 3 || i == 4) == before, "cancelled %s: it is gone", when[i]);
        ok(!moments_take(0), "no worker begins with it");
        if (i == 2 || i == 3)
            ok(sr_slot_gone(moments_workers[0].w.request.slot, moments_workers[0].w.number) & SR_GONE_CLIENT,
               "and its worker knows");
        while (moments_write(0))
            settle();
        id = ask("h2 length");
        if (i == 5) {
            h2wire_setting(client.h2, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20);
        }
        settle();
        ok(serve() && is_whole(), "the next is served");
        close_both(when[i]);
    }
}

/* --- windows --- */

/* Tunnels whose application has not taken them: what clients of others hold is given. */
static void tunnels(void)
{
    open_both();
    char path[40];
    int32_t stream = client.next;
    client.next += 2;
    snprintf(path, sizeof path, "/%u.%d", ++ids, MOMENTS_SHAPES_1);
    const nghttp2_nv nv[] = {h2wire_field(":method", "CONNECT"), h2wire_field(":protocol", "a"),
                             h2wire_field(":scheme", "http"), h2wire_field(":path", path),
                             h2wire_field(":authority", "a")};
    h2wire_head(client.h2, stream, 0, nv, 5, 0);
    settle();
    MUST(moments_take(0));
    sr_engine *e = moments_edge->engine;
    size_t others = SR_OUTPUT_TOTAL - 2 * LARGE;
    e->passing = others;
    body(stream, 0, LARGE, false);
    settle();
    ok(e->passing == others + LARGE && !reply(stream)->reset, "a tunnel has as much as is left for others");
    body(stream, 0, 1, false);
    settle();
    ok(e->passing == others && reply(stream)->reset, "and is reset when it brings more");
    e->passing = 0;
    moments_leave(&client);
    moments_die(0);
    end_edge();
}

/*
 * Whether the time limit of the first stream keeps its place when the connection moves: to look for it costs
 * time for each that stalls.
 */
static bool keeps_place(void)
{
    sr_exchange *x = SR_LIST_ENTRY(session()->streams.next, sr_h2_stream, link)->exchange;
    sr_deadline other = x->deadline;
    MUST(other.kind == SR_DEADLINE_STALL);
    sr_link_init(&other.link);
    sr_link_append(x->deadline.link.next, &other.link);
    h2wire_frame(client.h2, NGHTTP2_PING, 0, 0, "12345678", 8);
    settle();
    bool kept = x->deadline.link.next == &other.link;
    sr_link_remove(&other.link);
    return kept;
}

static void windows(void)
{
    open_edge();
    open_client(false);
    h2wire_setting(client.h2, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100);
    int32_t first = ask("h2 file"), second = ask("h2 HEAD");
    settle();
    MUST(serve() && serve());
    ok(reply(first)->status == 200 && reply(first)->len == 100, "a window of 100: so many bytes come");
    ok(!moments_workers[0].shape, "the worker is free");
    ok(reply(second)->ended, "another stream goes on");
    h2wire_forget(client.h2, second);
    moments_answered(&client, 1);
    ok(keeps_place(), "its time limit is not placed again");
    for (int i = 0; i < 5; i++) {
        h2wire_with(client.h2, NGHTTP2_WINDOW_UPDATE, first, 1);
        settle();
    }
    is_int((long long)reply(first)->len, 105, "five updates of one byte: five bytes");
    h2wire_setting(client.h2, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    settle();
    h2wire_with(client.h2, NGHTTP2_WINDOW_UPDATE, first, 50);
    settle();
    is_int((long long)reply(first)->len, 105, "the window was made smaller, and is negative");
    h2wire_setting(client.h2, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20);
    settle();
    ok(is_whole(), "it opens: the rest comes");
    /* that of the connection */
    int32_t id[4];
    for (int i = 0; i < 4; i++)
        id[i] = ask("h2 file");
    settle();
    while (serve())
        ;
    size_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += reply(id[i])->len;
    ok(sum > 40000 && sum < 65535, "the window of the connection ends: %zu bytes", sum);
    h2wire_with(client.h2, NGHTTP2_WINDOW_UPDATE, 0, 1 << 20);
    settle();
    int whole = 0;
    while (client.n && is_whole())
        whole++;
    is_int(whole, 4, "and opens");
    /* a client that never opens it */
    first = ask("h2 file");
    h2wire_setting(client.h2, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
    settle();
    MUST(serve());
    for (int i = 0; i < 20 && !reply(first)->reset; i++) {
        moments_wait(SR_SECOND);
        settle();
    }
    ok(!client.ended && reply(first)->reset && !reply(first)->ended,
       "--write-timeout resets a stream whose window stays closed");
    moments_answered(&client, 0);
    h2wire_setting(client.h2, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20);
    ask("h2 length");
    settle();
    ok(serve() && is_whole(), "and its connection goes on");
    client.n = 0;
    close_both("windows");
}

/* --- the end of a connection --- */

static void drains(void)
{
    open_both();
    settle();
    moments_edge->engine->says_close = true;
    sr_session_drain(moments_edge->engine, session()->conn);
    settle();
    ok(client.h2->goaways == 1 && client.h2->last == INT32_MAX && client.h2->error == 0,
       "no stream: GOAWAY is announced");
    int32_t meanwhile = ask("h2 whole");
    settle();
    ok(serve() && is_whole(), "a request that comes then is served");
    for (int i = 0; i < 4 && !client.ended; i++) {
        moments_wait(SR_SECOND);
        settle();
    }
    ok(client.h2->goaways == 2 && client.h2->last == meanwhile && client.ended,
       "a second later comes the last, and the end");
    close_both("idle");

    open_both();
    ask("h2 length");
    settle();
    MUST(moments_take(0) && moments_write(0));
    sr_worker_flush(&moments_workers[0].w);
    client.h2->silent = true;
    sr_stop_begin(moments_edge, false);
    settle();
    ok(client.h2->goaways == 1 && client.h2->last == INT32_MAX, "a stream: the first GOAWAY names none");
    int32_t late = ask("h2 whole");
    settle();
    is_int(client.h2->goaways, 1, "it is not the last while PING is not answered");
    h2wire_frame(client.h2, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0, "\0\0\0\0\0\0\0\0", 8);
    settle();
    is_int(client.h2->goaways, 1, "nor within a second");
    moments_wait(SR_SECOND);
    moments_step();
    sr_session_due(session());
    settle();
    ok(client.h2->goaways == 2 && client.h2->last == late, "the second names the last that is served");
    int32_t refused = ask("h2 whole");
    settle();
    ok(!reply(refused)->status && !moments_h2_over(&client, late) && moments_h2_over(&client, refused),
       "one behind it is not served, as the client knows");
    client.n--;
    while (moments_write(0))
        settle();
    ok(is_whole() && serve() && is_whole(), "the others are served");
    for (int i = 0; i < 4 && !client.ended; i++) {
        moments_wait(SR_SECOND);
        settle();
    }
    ok(client.ended, "then it ends");
    moments_leave(&client);
    moments_die(0);
    end_edge();

    open_taken();
    h2wire_goaway(client.h2, 0, NGHTTP2_NO_ERROR);
    settle();
    while (moments_write(0))
        settle();
    ok(is_whole(), "GOAWAY of the client: its stream is served");
    settle();
    ok(client.ended, "and the connection ends");
    close_both("GOAWAY of the client");

    open_taken();
    sr_session_goaway(session());
    for (int record = 0; record < 4; record++) /* all but its end */
        MUST(moments_write(0));
    sr_worker_flush(&moments_workers[0].w);
    settle();
    ok(is_whole() && !client.ended, "behind the last GOAWAY, a response waits for its application");
    moments_die(0);
    moments_died(0);
    settle();
    ok(client.ended, "whose worker dies: that was the last one");
    close_client("a worker that dies");
    end_edge();

    open_taken();
    h2wire_frame(client.h2, NGHTTP2_DATA, 0, 0, "x", 1);
    settle();
    ok(client.ended && client.h2->goaways == 1 && client.h2->error == NGHTTP2_PROTOCOL_ERROR,
       "an error of the client ends its connection at once, though a worker has a stream");
    ok(sr_slot_gone(moments_workers[0].w.request.slot, moments_workers[0].w.number) & SR_GONE_CLIENT,
       "which knows");
    while (moments_write(0))
        settle();
    close_both("an error");
}

/* --- what waits for responses --- */

static void holds(void)
{
    sr_engine *e;
    open_both();
    e = moments_edge->engine;
    ask("h2 length");
    settle();
    MUST(moments_take(0));
    for (int late = 0; late < 2; late++) {
        e->brisk = true;
        h2wire_frame(client.h2, NGHTTP2_PING, 0, 0, "12345678", 8);
        settle();
        ok(sr_link_alone(&e->holding) == late, "a frame %s",
           late ? "does not wait for a call that takes long" : "waits for a call that has just begun");
        e->brisk = false;
        settle();
        moments_wait(SR_SECOND);
    }
    while (moments_write(0))
        settle();
    ok(is_whole(), "which is answered");
    close_both("calls");
}

/* --- allocations --- */

/*
 * What it does while the allocation with this number fails, and all others if `all`. True: no more were
 * needed.
 */
static bool without(long number, bool all, int *whole)
{
    bool enough;
    open_both();
    ask("h2 hint");
    int32_t id = post(BODY, false);
    body(id, 0, BODY, true);
    ask("h2 file");
    fuzz_memory_short(number, all);
    for (int turn = 0; turn < 12; turn++) {
        fuzz_memory.on = false;
        moments_h2_send(&client, SIZE_MAX);
        moments_take(0);
        for (int i = 0; i < 2; i++)
            moments_write(0);
        if (moments_workers[0].shape)
            sr_worker_flush(&moments_workers[0].w);
        fuzz_memory.on = true;
        moments_step();
        fuzz_memory.on = false;
        moments_read(&client, 1 << 20);
    }
    fuzz_memory_enough();
    enough = !fuzz_memory.failed;
    for (int i = 0; i < 20; i++) {
        serve();
        settle();
    }
    *whole = 0;
    bool ends = true;
    while (client.n) {
        int status;
        moments_verdict v = moments_h2_judge(&client, 0, &status);
        if (v == V_WRONG || (v < V_WHOLE && !moments_h2_over(&client, client.asked[0].stream))) {
            printf("# allocation %ld%s: verdict %d of %d, status %d\n", number, all ? " and all" : "", v,
                   client.asked[0].stream, status);
            ends = false;
        }
        *whole += v == V_WHOLE;
        if (v < V_WHOLE || v == V_WRONG)
            client.n = 0;
    }
    const sr_engine *e = moments_edge->engine;
    moments_leave(&client);
    for (int i = 0; i < 12; i++) {
        moments_wait(SR_SECOND);
        moments_step();
    }
    if (!ends || e->n_conns || e->pending || moments_edge->queue.n_free != moments_edge->slots)
        ok(false, "allocation %ld%s: %s, connections %d, bytes %zu", number, all ? " and all" : "",
           ends ? "all ends" : "something waits for ever", (int)e->n_conns, e->pending);
    moments_die(0);
    end_edge();
    return enough;
}

static void allocations(void)
{
    for (int all = 0; all < 2; all++) {
        int whole, before = fuzz_descriptors();
        long n = 1;
        while (n < 2000 && !without(n, all, &whole))
            n++;
        is_int(whole, 3, "no allocation fails: three responses");
        ok(n > 50 && n < 2000, "each of %ld allocations has failed%s", n - 1,
           all ? ", and all behind it" : "");
        is_int(fuzz_descriptors_again(before), before, "no descriptor is left");
    }
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    moments_setup();
    splits();
    no_preface();
    silent();
    bodies();
    responses();
    cancels();
    windows();
    tunnels();
    drains();
    holds();
    allocations();
    return done_testing();
}

#else

int main(void)
{
    printf("1..0 # SKIP libnghttp2 is not installed\n");
    return 0;
}

#endif
