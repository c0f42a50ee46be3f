/*
 * heir: the messages that pass connections on. Each consists of a struct passage and the descriptors of its
 * connections. A connection of which bytes were already read, or which is encrypted, has a second descriptor:
 * a file with the state of the encryption and these bytes.
 */
#include "heir.h"

#include "../base/wipe.h"
#include "../conn/capacity.h"
#include "../conn/deadline.h"
#include "../conn/lifetime.h"
#include "../conn/listener.h"
#include "../conn/trouble.h"
#include "../live/hold.h"
#include "../live/recent.h"
#include "../net/descriptors.h"
#include "../net/memfile.h"
#include "../net/passing.h"
#include "../net/tempfile.h"
#include "../websocket/websocket.h"
#include "others.h"
#include "report.h"
#include "slots.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    LAYOUT = 4 << 16,                /* increased when a message changes its meaning */
    PASSED_MAX = SR_PASSING_MAX - 1, /* the last one may have a file */
    MESSAGES_PER_EVENT = 8,
    TOLD_MAX = 256,
};
#define TOLD UINT32_C(0x80000000)

#define RETRY_NS (2 * SR_MILLISECOND) /* before the next try, when the socket pair is full */
#define TELL_NS (2 * SR_SECOND)       /* that the heir has to tell its layout */
#define DRAIN_NS (2 * SR_SECOND)      /* before the end, in which connections that stay here are closed */
#define LEAST_NS SR_SECOND            /* what the new edge leaves a connection at least of its time limit */

typedef struct passed {
    sr_peer peer;
    uint32_t bytes; /* how many bytes were read and not used */
    /* how many bytes before them in the file are the state of the encryption; 0: it is plain */
    uint32_t transport;
    /* how many bytes behind both are what is held for the application (live/move.h); 0: nothing is */
    uint32_t held;
    uint32_t unused_too;
    int64_t since; /* monotonic time in ns at which its time limit began */
    uint32_t requests;
    uint8_t listener;
    uint8_t head;         /* 1: the time limit is that of a head; 0: that of an idle connection */
    uint8_t proxy_header; /* the header of the PROXY protocol has not come yet */
    uint8_t unused[5];
} passed;

typedef struct passage {
    uint32_t layout;
    uint32_t n; /* or TOLD and how many numbers */
    union {
        passed conns[PASSED_MAX];
        uint64_t
            numbers[TOLD_MAX]; /* of publications that connections which follow have had (live/recent.h) */
    };
} passage;

/* What the heir tells first. It is the same in all versions. */
typedef struct greeting {
    char magic[8];
    uint32_t layout;
    uint32_t holds; /* a bit for each sr_held_kind that it takes over; earlier builds do not say it */
} greeting;

static const greeting ours = {"sr-heir", LAYOUT + (uint32_t)sizeof(passage), 0};

static uint32_t layout(void)
{
    return ours.layout;
}

static size_t bytes_of(uint32_t n)
{
    return offsetof(passage, conns) + n * sizeof(passed);
}

/* --- passing on --- */

typedef struct batch {
    passage what;
    sr_conn *conns[PASSED_MAX];
    int fds[PASSED_MAX + 1], n_fds, most;
} batch;

static bool movable(const sr_conn *c)
{
    return (c->state == SR_CONN_IDLE || c->state == SR_CONN_HEAD) && !c->out &&
           !(c->exchange && (c->exchange->slot || c->exchange->body)) && !c->borrowed &&
           sr_transport_moves(c->transport);
}

static int file_of(const sr_buffer *transport, const sr_buffer *in, const sr_buffer *held)
{
    struct iovec iov[] = {{sr_buffer_at(transport), sr_buffer_len(transport)},
                          {sr_buffer_at(in), sr_buffer_len(in)},
                          {sr_buffer_at(held), sr_buffer_len(held)}};
    return sr_memfile("sirius-passed", iov, 3, false);
}

static bool has_file(const passed *p)
{
    return p->bytes || p->transport || p->held;
}

static void discard_files(batch *b)
{
    for (uint32_t i = 0, fd = 0; i < b->what.n; i++) {
        fd++;
        if (has_file(&b->what.conns[i]))
            close(b->fds[fd++]);
    }
    b->what.n = 0;
    b->n_fds = 0;
}

/* 0: they all belong to the heir now. EAGAIN: try again later. Anything else: the heir is gone. */
static int send_batch(sr_edge *ed, batch *b)
{
    sr_engine *e = ed->engine;
    if (!b->what.n)
        return 0;
    sr_others_passed(ed, b->what.n); /* first: the other edge counts them as soon as it has them */
    ssize_t n =
        sr_passing_send(ed->heir.pair.fd, &b->what, bytes_of(b->what.n), b->fds, b->n_fds, MSG_DONTWAIT);
    int err = n >= 0 ? 0 : errno;
    for (uint32_t i = 0; !err && i < b->what.n; i++) {
        sr_subscriber *s =
            has_file(&b->what.conns[i]) && b->what.conns[i].held ? b->conns[i]->exchange->held : NULL;
        if (s && s->ops->passed)
            s->ops->passed(s);
        sr_conn_unwatch(e, b->conns[i]); /* explicitly, as the open file lives on in the heir */
        sr_conn_forget(e, b->conns[i]);
    }
    if (!err)
        sr_counters_add(&e->row->counters.given, b->what.n);
    sr_others_passed(ed, 0);
    discard_files(b);
    /* ETOOMANYREFS: more descriptors are in flight than this process may have open */
    bool full = err == EWOULDBLOCK || err == ENOBUFS || err == ENOMEM || err == ETOOMANYREFS;
    return full ? EAGAIN : err;
}

static int64_t since(const sr_engine *e, const sr_conn *c)
{
    return sr_link_alone(&c->deadline.link) ? e->now : c->deadline.at - e->deadlines.limit[c->deadline.kind];
}

/* `held`: what is held on it; empty: nothing is. */
static int add(sr_edge *ed, batch *b, sr_conn *c, const sr_buffer *held)
{
    bool idle = !sr_link_alone(&c->deadline.link) && c->deadline.kind == SR_DEADLINE_IDLE;
    passed *p = &b->what.conns[b->what.n];
    /* a byte that is held is the last in c->in; the heir reads it, and can hold it */
    sr_buffer in = c->in;
    in.end -= c->held;
    size_t bytes = sr_buffer_len(&in);
    sr_buffer transport = {0};
    int file = -1;
    bool packed = sr_transport_pack(c->transport, &transport);
    size_t state = sr_buffer_len(&transport);
    size_t kept = sr_buffer_len(held);
    if (packed && (bytes || state || kept))
        file = file_of(&transport, &in, held);
    if (transport.data)
        sr_wipe(transport.data, transport.cap);
    sr_buffer_free(&transport);
    if (!packed || (file < 0 && (bytes || state || kept)))
        return 0; /* the connection stays here for now */
    *p = (passed){.peer = c->peer,
                  .bytes = (uint32_t)bytes,
                  .transport = (uint32_t)state,
                  .held = (uint32_t)kept,
                  .since = since(ed->engine, c),
                  .requests = c->requests,
                  .listener = c->listener,
                  .head = !idle,
                  .proxy_header = c->proxy_header};
    b->conns[b->what.n++] = c;
    b->fds[b->n_fds++] = c->source.fd;
    if (file >= 0)
        b->fds[b->n_fds++] = file;
    return b->n_fds < b->most ? 0 : send_batch(ed, b);
}

/* Passes on the connections of a list that is linked by the member at `offset`. */
static int pass_list(sr_edge *ed, batch *b, sr_link *head, size_t offset)
{
    int err = 0;
    for (sr_link *l = head->next, *next; l != head && !err; l = next) {
        sr_conn *c = (sr_conn *)((char *)l - offset);
        next = l->next;
        if (movable(c))
            err = add(ed, b, c, &(sr_buffer){0});
    }
    int last = send_batch(ed, b); /* now, as a connection may be in the next list too */
    return err ? err : last;
}

/* Tells which publications the connections have had that follow. As send_batch. */
static int tell(sr_edge *ed)
{
    static passage what; /* one thread uses it */
    bool more = true;
    while (more) {
        uint32_t n = 0;
        while (n < TOLD_MAX && (more = sr_recent_untold(ed->live, &what.numbers[n])))
            n++;
        what.layout = layout();
        what.n = TOLD | n;
        size_t len = offsetof(passage, numbers) + n * sizeof what.numbers[0];
        if (n && sr_passing_send(ed->heir.pair.fd, &what, len, NULL, 0, MSG_DONTWAIT) < 0) {
            int err = errno;
            sr_recent_again(ed->live, n);
            return err == EWOULDBLOCK || err == ENOBUFS || err == ENOMEM ? EAGAIN : err;
        }
    }
    return 0;
}

static int pass_one_held(sr_edge *ed, batch *b, sr_conn *c)
{
    const sr_subscriber *s = c->exchange->held;
    sr_buffer held = {0};
    int err = 0;
    if (s && s->exchange == c->exchange && s->ops->pack && s->ops->pack(ed->live, s, &held)) {
        char kind = (char)s->ops->kind;
        err = sr_buffer_add(&held, &kind, 1) ? add(ed, b, c, &held) : 0;
    }
    sr_buffer_free(&held);
    return err;
}

/* Passes on the connections whose responses are held. */
static int pass_held(sr_edge *ed, batch *b)
{
    int err = tell(ed);
    for (sr_link *l = ed->engine->all.next, *next; l != &ed->engine->all && !err; l = next) {
        sr_conn *c = SR_LIST_ENTRY(l, sr_conn, all);
        next = l->next;
        if (c->state == SR_CONN_HELD && !c->out && sr_live_moves(c))
            err = pass_one_held(ed, b, c);
    }
    int last = send_batch(ed, b);
    return err ? err : last;
}

/*
 * All that is left stays here: an idle client may be about to send, so each gets the response to its next
 * request.
 */
static void heir_lost(sr_edge *ed)
{
    sr_loop_remove(&ed->engine->loop, &ed->heir.pair);
    close(ed->heir.pair.fd);
    ed->heir.pair.fd = -1;
    ed->heir.layout_by = ed->heir.pass_at = 0;
    ed->engine->apart = true;
}

/* Nothing can be passed on. `theirs` 0: the heir has not told its layout. */
static void foreign(sr_edge *ed, uint32_t theirs)
{
    char text[160];
    if (theirs)
        snprintf(text, sizeof text,
                 "%d apart has layout %u.%u of connections that are passed on, not %u.%u\n", (int)getpid(),
                 theirs >> 16, theirs & 0xffff, layout() >> 16, layout() & 0xffff);
    else
        snprintf(text, sizeof text, "%d apart does not tell its layout\n", (int)getpid());
    sr_report(ed, text);
    heir_lost(ed);
}

/*
 * How many connections one message may carry. The kernel drops descriptors that do not fit the receiver's
 * table; its limit is the same as that of this process.
 */
static int most(void)
{
    int few = sr_descriptors_limit() / 8;
    return few < 1 ? 1 : few < PASSED_MAX ? few : PASSED_MAX;
}

static void pass_on(sr_edge *ed)
{
    static batch b; /* one thread uses it */
    sr_engine *e = ed->engine;
    b = (batch){.what.layout = layout(), .most = most()};
    int err = pass_list(ed, &b, &e->intake.buffered, offsetof(sr_conn, buffered));
    if (!err)
        err = pass_list(ed, &b, &e->deadlines.list[SR_DEADLINE_IDLE], offsetof(sr_conn, deadline.link));
    if (!err)
        err = pass_list(ed, &b, &e->deadlines.list[SR_DEADLINE_HEAD], offsetof(sr_conn, deadline.link));
    if (!err && ed->live)
        err = pass_held(ed, &b);
    ed->heir.pass_at = err == EAGAIN ? e->now + RETRY_NS : 0;
    if (err && err != EAGAIN)
        heir_lost(ed);
}

void sr_heir_begin(sr_edge *ed, int fd)
{
    sr_engine *e = ed->engine;
    sr_engine_tick(e);
    ed->heir.pair = (sr_source){.fd = fd, .kind = SR_SOURCE_HEIR};
    e->retiring = true;
    if (ed->live)
        sr_live_retire(ed->live);
    sr_engine_drain_streams(e);
    ed->stop.end_at = e->now + ed->stop.graceful_ns;
    ed->heir.layout_by = e->now + TELL_NS;
    sr_listeners_watch(e, false);
    if (sr_loop_add(&e->loop, &ed->heir.pair, EPOLLIN))
        heir_lost(ed);
}

void sr_heir_heard(sr_edge *ed)
{
    greeting theirs;
    if (ed->heir.pair.fd < 0)
        return;
    ssize_t n = recv(ed->heir.pair.fd, &theirs, sizeof theirs, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    bool told = ed->heir.layout_by && n >= (ssize_t)offsetof(greeting, holds);
    if (told && theirs.layout == layout() && n == (ssize_t)sizeof theirs) {
        ed->heir.layout_by = 0;
        if (ed->live)
            sr_live_yield(ed->live, theirs.holds);
    } else if (told)
        foreign(ed, theirs.layout);
    else
        heir_lost(ed);
}

int64_t sr_heir_at(const sr_edge *ed)
{
    const sr_engine *e = ed->engine;
    if (ed->heir.pair.fd >= 0 && ed->heir.layout_by)
        return ed->heir.layout_by;
    if (ed->heir.pass_at)
        return ed->heir.pass_at;
    return e->retiring && !e->draining && ed->heir.pair.fd < 0 ? ed->stop.end_at - DRAIN_NS : INT64_MAX;
}

bool sr_heir_done(const sr_edge *ed)
{
    /* abandoned requests keep it alive too: nobody else watches their workers */
    return sr_engine_over(ed->engine) && !sr_slots_used(ed) &&
           !(ed->websockets && !sr_link_alone(&ed->websockets->list)); /* the application is told of an end */
}

bool sr_heir_step(sr_edge *ed)
{
    sr_engine *e = ed->engine;
    if (ed->heir.pair.fd >= 0 && ed->heir.layout_by && ed->heir.layout_by <= e->now)
        foreign(ed, 0);
    if (ed->heir.pair.fd >= 0 && !ed->heir.layout_by && ed->heir.pass_at <= e->now)
        pass_on(ed);
    if (ed->heir.pair.fd < 0 && ed->stop.end_at - DRAIN_NS <= e->now) {
        e->draining = true;
        if (ed->live)
            sr_live_drain(ed->live);
    }
    return sr_heir_done(ed) || e->now >= ed->stop.end_at;
}

/* --- taking over --- */

static bool fill(sr_buffer *to, int file, uint32_t from, uint32_t bytes)
{
    /* at once: no copy of keys is left behind */
    if (!sr_buffer_reserve(to, bytes) ||
        sr_tempfile_read(file, to->data + to->end, bytes, from) != (ssize_t)bytes)
        return false;
    to->end += bytes;
    return true;
}

static bool decrypts(sr_conn *c, const passed *p, int file)
{
    sr_buffer state = {0};
    if (!p->transport)
        return true;
    if (fill(&state, file, 0, p->transport))
        c->transport = sr_tls_adopt(sr_buffer_bytes(&state), c->source.fd);
    if (state.data)
        sr_wipe(state.data, state.cap);
    sr_buffer_free(&state);
    return c->transport;
}

static void adopt_held(sr_edge *ed, const passed *p, sr_conn *c, int file)
{
    sr_buffer held = {0};
    bool ok = ed->live && fill(&held, file, p->transport + p->bytes, p->held);
    char kind = ok ? held.data[--held.end] : 0;
    sr_bytes packed = sr_buffer_bytes(&held);
    if (ok && kind == SR_HELD_WEBSOCKET)
        ok = ed->websockets && sr_websocket_adopt(ed->websockets, c, packed);
    else
        ok = ok && kind <= SR_HELD_RESPONSE && sr_hold_adopt(ed->live, c, packed);
    sr_buffer_free(&held);
    if (!ok)
        sr_conn_close(ed->engine, c, SR_CLOSED_ERROR);
    sr_capacity_make(ed->engine);
}

static void adopt(sr_edge *ed, const passed *p, int fd, int file)
{
    sr_engine *e = ed->engine;
    sr_conn *c = p->listener < e->listeners.n ? sr_conn_new(fd, &p->peer, p->listener) : NULL;
    if (!c) {
        sr_trouble_count(e, SR_TROUBLE_RESET, 1, ENOMEM);
        close(fd);
        return;
    }
    sr_conn_enter(e, c);
    sr_capacity_taken(e, fd);
    sr_counters_add(&e->row->counters.taken, 1);
    c->proxy_header = p->proxy_header;
    c->requests = p->requests;
    c->state = p->head && p->bytes && !p->proxy_header ? SR_CONN_HEAD : SR_CONN_IDLE;
    if (!decrypts(c, p, file) || (p->bytes && !fill(&c->in, file, p->transport, p->bytes))) {
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return;
    }
    if (p->held) {
        adopt_held(ed, p, c, file);
        return;
    }
    sr_deadline_kind kind = p->head ? SR_DEADLINE_HEAD : SR_DEADLINE_IDLE;
    int64_t limit = e->deadlines.limit[kind], least = e->now + (limit < LEAST_NS ? limit : LEAST_NS);
    int64_t until = p->since > 0 && p->since < e->now ? p->since + limit : e->now + limit;
    sr_deadline_keep(e, c, kind, until > least ? until : least);
    if (p->bytes || sr_transport_holds(c->transport))
        sr_link_append(&e->intake.buffered, &c->buffered);
    else
        sr_conn_watch(e, c, EPOLLIN);
    sr_capacity_make(e);
}

/* Receives one message. 0 or errno; EPIPE: no more will come. */
static int take(sr_edge *ed)
{
    static passage what; /* one thread uses it */
    int fds[PASSED_MAX + 1], n_fds = PASSED_MAX + 1, at = 0;
    ssize_t n = sr_passing_receive(ed->heir.legacy.fd, &what, sizeof what, fds, &n_fds, NULL, MSG_DONTWAIT);
    if (n <= 0)
        return n == 0 ? EPIPE : errno;
    bool told = n >= (ssize_t)bytes_of(0) && what.layout == layout() && what.n & TOLD;
    if (told && ed->live)
        for (size_t i = 0; i < (what.n & ~TOLD) && offsetof(passage, numbers[i + 1]) <= (size_t)n; i++)
            sr_recent_told(ed->live, what.numbers[i]);
    if (told)
        what.n = 0;
    bool sound = told || (n >= (ssize_t)bytes_of(0) && what.layout == layout() && what.n <= PASSED_MAX &&
                          n == (ssize_t)bytes_of(what.n));
    for (uint32_t i = 0; sound && i < what.n; i++) {
        const passed *p = &what.conns[i];
        int fd = at < n_fds ? fds[at++] : -1, file = has_file(p) && at < n_fds ? fds[at++] : -1;
        if (fd >= 0)
            adopt(ed, p, fd, file);
        if (file >= 0)
            close(file);
    }
    while (at < n_fds)
        close(fds[at++]);
    return sound ? 0 : EPROTO;
}

void sr_heir_greet(int fd, uint32_t holds)
{
    /*
     * `ours` itself, not a copy of it: the compiler would put the layout into the program a second time, and
     * a test changes it there
     */
    struct iovec iov[] = {{(void *)(uintptr_t)&ours, offsetof(greeting, holds)}, {&holds, sizeof holds}};
    const struct msghdr message = {.msg_iov = iov, .msg_iovlen = 2};
    /* the pair is empty, so this never waits; if the old edge has gone, that is an event */
    ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)n;
}

/* What this edge takes over of what is held. */
static uint32_t holds(const sr_edge *ed)
{
    return (ed->live ? 1U << SR_HELD_STREAM | 1U << SR_HELD_RESPONSE : 0) |
           (ed->websockets ? 1U << SR_HELD_WEBSOCKET : 0);
}

/* Nothing more is taken over. */
static void legacy_over(sr_edge *ed)
{
    sr_loop_remove(&ed->engine->loop, &ed->heir.legacy);
    close(ed->heir.legacy.fd);
    ed->heir.legacy.fd = -1;
    if (ed->live)
        sr_recent_keep(ed->live, false);
}

void sr_heir_inherit(sr_edge *ed, int fd)
{
    if (ed->heir.legacy.fd >= 0)
        legacy_over(ed);
    if (ed->live)
        sr_recent_keep(ed->live, true);
    ed->heir.legacy = (sr_source){.fd = fd, .kind = SR_SOURCE_LEGACY};
    sr_heir_greet(fd, holds(ed));
    if (sr_loop_add(&ed->engine->loop, &ed->heir.legacy, EPOLLIN))
        legacy_over(ed);
}

void sr_heir_receive(sr_edge *ed)
{
    int err = 0;
    if (ed->heir.legacy.fd < 0)
        return;
    for (int i = 0; !err && i < MESSAGES_PER_EVENT; i++)
        err = take(ed);
    if (!err || err == EAGAIN || err == EWOULDBLOCK)
        return;
    legacy_over(ed); /* the old edge has ended, or is of another build */
}
