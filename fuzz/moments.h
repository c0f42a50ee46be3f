#ifndef FUZZ_MOMENTS_H
#define FUZZ_MOMENTS_H
/*
 * moments: a whole edge in this process with clients and workers, in which everything happens when the
 * program says so: a clock that only it turns, workers that write the next record of a reply when they are
 * told to, clients that read so many bytes, and something that happens while the edge is about to send
 * (moments_inside). xt/c/moments.c goes through a table with it, fuzz/moments.c does anything in any order.
 *
 * The workers are src/worker itself, as xs/ calls it. A worker never waits here: a record for which there is
 * no room, or whose client is behind, is written by a later call.
 *
 * Each request names a shape, by which its worker replies, and a number, from which its status, fields and
 * body follow; so whatever a client has got can be judged (moments_judge): it is the whole response to its
 * request, or seen to be no response, or wrong. A client speaks HTTP/1.x, or HTTP/2, of which each request is
 * a stream.
 */
#include "edge/edge.h"
#include "share/memory.h"

#include "base/clock.h"
#include "conn/deadline.h"
#include "edge/crew.h"
#include "edge/deliver.h"
#include "edge/entry.h"
#include "edge/heir.h"
#include "edge/limits.h"
#include "edge/slots.h"
#include "edge/stop.h"
#include "fuzz.h"
#include "net/descriptors.h"
#include "net/signalfd.h"
#include "net/timerfd.h"
#ifdef SR_HTTP2
#include "h2wire.h"
#endif
#include "share/door.h"
#include "worker/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOMENTS_ROWS = 3, MOMENTS_BODY = 9000, MOMENTS_PENDING = 16 };

/* --- time and system calls --- */

static int64_t moments_now; /* monotonic ns; 0: the real clock. The wall clock is always real */
/* Called once, while the edge is about to send to a client. */
static void (*moments_inside)(void);

int clock_gettime(clockid_t id, struct timespec *t);
int clock_gettime(clockid_t id, struct timespec *t)
{
    if (!moments_now || id != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, id, t);
    *t = (struct timespec){.tv_sec = moments_now / SR_SECOND, .tv_nsec = moments_now % SR_SECOND};
    return 0;
}

static void moments_happen(void)
{
    void (*what)(void) = moments_inside;
    moments_inside = NULL;
    if (what)
        what();
}

/* send and sendmsg are what a response leaves by */
ssize_t send(int socket, const void *at, size_t len, int flags)
{
    moments_happen();
    return syscall(SYS_sendto, socket, at, len, flags, NULL, 0);
}

ssize_t sendmsg(int socket, const struct msghdr *msg, int flags)
{
    if (!msg->msg_controllen) /* otherwise it is a note */
        moments_happen();
    return syscall(SYS_sendmsg, socket, msg, flags);
}

/* --- what is asked for, and what has to come --- */

typedef enum moments_record {
    R_OVER, /* the shape has no more */
    R_LOG,
    R_INTERIM,
    R_FIELDS,
    R_HEAD,
    R_WHOLE, /* HEAD and END in one */
    R_DATA,
    R_FILE,
    R_END,
    R_CUT,
    R_UNREAD,
    R_TAKE,  /* a note: asks for the socket (psgix.io) */
    R_SPEAK, /* the application writes half of its response there */
    R_TAKEN, /* the other half */
} moments_record;

typedef enum moments_framing { F_CHUNKED, F_LENGTH } moments_framing;

typedef struct moments_shape {
    const char *name;
    const char *method;
    int minor;
    moments_framing framing;
    moments_record record[12];
} moments_shape;

/* What is between two DATA of a shape is a moment of its own, so few are enough. */
static const moments_shape moments_shapes[] = {
    {"whole", "GET", 1, F_LENGTH, {R_WHOLE}},
    {"logged", "GET", 1, F_LENGTH, {R_LOG, R_WHOLE}},
    {"fields", "GET", 1, F_LENGTH, {R_FIELDS, R_FIELDS, R_HEAD, R_DATA, R_END}},
    {"length", "GET", 1, F_LENGTH, {R_HEAD, R_DATA, R_LOG, R_DATA, R_END}},
    {"chunked", "GET", 1, F_CHUNKED, {R_HEAD, R_DATA, R_DATA, R_DATA, R_END}},
    {"old", "GET", 0, F_CHUNKED, {R_HEAD, R_DATA, R_DATA, R_END}},
    {"old length", "GET", 0, F_LENGTH, {R_HEAD, R_DATA, R_END}},
    {"HEAD", "HEAD", 1, F_CHUNKED, {R_HEAD, R_DATA, R_END}},
    {"file", "GET", 1, F_LENGTH, {R_HEAD, R_FILE, R_END}},
    {"hint", "GET", 1, F_CHUNKED, {R_INTERIM, R_INTERIM, R_HEAD, R_DATA, R_END}},
    {"cut", "GET", 1, F_CHUNKED, {R_HEAD, R_DATA, R_CUT}},
    {"cut length", "GET", 1, F_LENGTH, {R_HEAD, R_DATA, R_CUT}},
    {"cut at once", "GET", 1, F_LENGTH, {R_CUT}},
    {"unread", "GET", 1, F_LENGTH, {R_UNREAD}},
    {"taken", "GET", 1, F_LENGTH, {R_TAKE, R_SPEAK, R_TAKEN}},
#ifdef SR_HTTP2
    {"h2 whole", "GET", 2, F_LENGTH, {R_WHOLE}},
    {"h2 fields", "GET", 2, F_LENGTH, {R_FIELDS, R_FIELDS, R_HEAD, R_DATA, R_END}},
    {"h2 length", "GET", 2, F_LENGTH, {R_HEAD, R_DATA, R_LOG, R_DATA, R_END}},
    {"h2", "GET", 2, F_CHUNKED, {R_HEAD, R_DATA, R_DATA, R_DATA, R_END}},
    {"h2 HEAD", "HEAD", 2, F_CHUNKED, {R_HEAD, R_DATA, R_END}},
    {"h2 file", "GET", 2, F_LENGTH, {R_HEAD, R_FILE, R_END}},
    {"h2 hint", "GET", 2, F_CHUNKED, {R_INTERIM, R_INTERIM, R_HEAD, R_DATA, R_END}},
    {"h2 cut", "GET", 2, F_CHUNKED, {R_HEAD, R_DATA, R_CUT}},
    {"h2 cut length", "GET", 2, F_LENGTH, {R_HEAD, R_DATA, R_CUT}},
    {"h2 cut at once", "GET", 2, F_LENGTH, {R_CUT}},
    {"h2 unread", "GET", 2, F_LENGTH, {R_UNREAD}},
#endif
};
enum {
    MOMENTS_SHAPES = sizeof moments_shapes / sizeof *moments_shapes,
    MOMENTS_SHAPES_1 = 15, /* of HTTP/1.x, which come first */
    MOMENTS_TAKEN = MOMENTS_SHAPES_1 - 1,
};

static char moments_byte(unsigned id, size_t i)
{
    return (char)('a' + (id * 7 + i * 11 + i / 251) % 26);
}

/*
 * Bytes of the body, in as many pieces as the shape has DATA; a body in one piece is in its head or its file
 */
static size_t moments_bytes(unsigned id, const moments_shape *shape)
{
    return shape->record[0] == R_WHOLE || shape->record[1] == R_WHOLE || shape->record[0] == R_TAKE
               ? 10 + id % 300
           : shape->record[1] == R_FILE ? 20000 + id % 300
                                        : MOMENTS_BODY + id % 300;
}

static unsigned moments_count(const moments_shape *shape, moments_record kind)
{
    unsigned n = 0;
    for (int i = 0; shape->record[i]; i++)
        n += shape->record[i] == kind;
    return n;
}

/* --- the edge --- */

static sr_edge *moments_edge;
static int moments_lobby = -1, moments_sleepers = -1, moments_report[2], moments_log, moments_listener;
static sr_setup moments_settings;
static sr_sleepers *moments_beds;

static void moments_setup(void)
{
    sr_setup *s = &moments_settings;
    sr_setup_init(s);
    /*
     * Tests count descriptors, and in a portable build the first of each opens what all others use. The timer
     * stays open: a thread would close its other half a moment later.
     */
    MUST(sr_timerfd_open() >= 0 && close(sr_signalfd_open(NULL, 0)) == 0);
    MUST(pipe2(moments_report, O_CLOEXEC | O_NONBLOCK) == 0 && sr_door_lobby(&moments_lobby) == 0);
    moments_beds = sr_memory_new("sleepers", SR_SLEEPERS_BYTES, &moments_sleepers);
    MUST(moments_beds);
    moments_log = memfd_create("log", MFD_CLOEXEC);
    MUST(moments_log >= 0 && fcntl(moments_log, F_SETFL, O_APPEND) == 0);
    moments_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); /* nobody connects */
    s->report = moments_report[1];
    s->lobby = moments_lobby;
    s->sleepers = moments_sleepers;
    s->graceful_ns = 30 * SR_SECOND;
    s->log.kind = SR_SINK_FILE;
    s->log.format = "%U %s %X";
    s->n_listeners = 1;
    s->listeners[0].fd = moments_listener;
    s->listeners[0].is_unix = true;
    s->listeners[0].is_h2c = true;
    s->config = (sr_config){.request = {.line = 200, .head = 2000, .fields = 30},
                            .max_body = 1000,
                            .body_memory = 1000,
                            .header_ns = 100 * SR_SECOND,
                            .idle_ns = 100 * SR_SECOND,
                            .body_ns = 100 * SR_SECOND,
                            .write_ns = 5 * SR_SECOND,
                            .linger_ns = 2 * SR_SECOND,
                            .request_ns = 20 * SR_SECOND,
                            .stream_ns = 10 * SR_SECOND,
                            .queue_ns = 4 * SR_SECOND,
                            .keepalive = true,
                            .max_connections = 100,
                            .max_queue = 40,
                            .report_fd = -1,
                            .tmpdir = "/tmp"};
}

static void moments_begin(void)
{
    if (moments_lobby < 0)
        moments_setup();
    moments_now = 1000 * SR_SECOND;
    memset(moments_beds, 0, SR_SLEEPERS_BYTES); /* the last edge may have said that all is over */
    sr_sleepers_init(moments_beds, MOMENTS_ROWS);
    moments_settings.log.fd = fcntl(moments_log, F_DUPFD_CLOEXEC, 0); /* the edge closes it */
    MUST(sr_edge_new(&moments_edge, &moments_settings) == 0);
}

/* Its connections have to be closed before. */
static void moments_end(void)
{
    sr_edge_free(moments_edge);
    moments_edge = NULL;
    moments_now = 0;
    moments_inside = NULL;
}

/* False: the edge has ended. */
static bool moments_step(void)
{
    return sr_edge_step(moments_edge, false);
}

static void moments_wait(int64_t ns)
{
    moments_now += ns;
}

/* What the edge has told the supervisor since the last call */
static inline const char *moments_told(void)
{
    static char text[1 << 16];
    ssize_t n = read(moments_report[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* The lines of the access log since the last call */
static inline const char *moments_lines(void)
{
    static char text[1 << 18];
    sr_sink_flush(moments_edge->engine->log->sink);
    ssize_t n = pread(moments_log, text, sizeof text - 1, 0);
    MUST(n >= 0 && ftruncate(moments_log, 0) == 0);
    text[n] = '\0';
    return text;
}

/* --- clients --- */

typedef struct moments_client {
    int fd;     /* -1: closed */
    bool ended; /* the edge has closed the connection, or reset it */
    bool reset;
    char *in; /* read, and not judged */
    size_t len, cap;
    struct {
        unsigned id;
        const moments_shape *shape;
        int32_t stream;       /* of HTTP/2 */
    } asked[MOMENTS_PENDING]; /* and not answered, in order */
    unsigned n;
    uint16_t name; /* the port of its peer, so that the connection can be found in the edge */
#ifdef SR_HTTP2
    h2wire *h2;   /* NULL: HTTP/1.x. Owned */
    int32_t next; /* stream */
#endif
} moments_client;

static void moments_connect(moments_client *k)
{
    static uint16_t name;
    int pair[2], small = 4608;
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    sr_conn *c = sr_conn_new(pair[0], &(sr_peer){.port = ++name}, 0);
    MUST(c);
    sr_conn_enter(moments_edge->engine, c);
    sr_deadline_set(moments_edge->engine, c, SR_DEADLINE_HEAD);
    MUST(sr_conn_watch(moments_edge->engine, c, EPOLLIN));
    k->fd = pair[1];
    k->name = name;
    k->ended = k->reset = false;
    k->n = 0;
    k->len = 0;
}

#ifdef SR_HTTP2
/* Its next bytes are the preface. */
static inline void moments_h2(moments_client *k, bool wide)
{
    k->h2 = malloc(sizeof *k->h2);
    MUST(k->h2);
    h2wire_begin(k->h2, wide);
    k->next = 1;
}

/* Sends what was written, at most so many bytes. */
static inline void moments_h2_send(moments_client *k, size_t most)
{
    h2wire *w = k->h2;
    while (w && most && w->out_len && k->fd >= 0) {
        ssize_t n = syscall(SYS_sendto, k->fd, w->out, w->out_len < most ? w->out_len : most,
                            MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
        if (n <= 0)
            return; /* the edge has closed it, or does not read */
        h2wire_sent(w, (size_t)n);
        most -= (size_t)n;
    }
}
#endif

static void moments_leave(moments_client *k)
{
    if (k->fd >= 0)
        close(k->fd);
    free(k->in);
#ifdef SR_HTTP2
    if (k->h2)
        h2wire_free(k->h2);
    free(k->h2);
#endif
    *k = (moments_client){.fd = -1};
}

static bool moments_asked(moments_client *k, unsigned id, const moments_shape *shape)
{
    if (k->n == MOMENTS_PENDING)
        return false;
    k->asked[k->n].id = id;
    k->asked[k->n++].shape = shape;
    return true;
}

#ifdef SR_HTTP2
/* Writes the head of a request. Returns its stream; 0: there are too many. */
static inline int32_t moments_h2_ask(moments_client *k, unsigned id, const moments_shape *shape, bool ends)
{
    char path[40];
    if (!moments_asked(k, id, shape))
        return 0;
    int32_t stream = k->asked[k->n - 1].stream = k->next;
    k->next += 2;
    snprintf(path, sizeof path, "/%u.%d", id, (int)(shape - moments_shapes));
    h2wire_ask(k->h2, stream, ends ? shape->method : "POST", path, ends);
    return stream;
}
#endif

static inline void moments_ask(moments_client *k, unsigned id, const moments_shape *shape)
{
    char text[200];
#ifdef SR_HTTP2
    if (shape->minor == 2) {
        if (!k->h2)
            moments_h2(k, true);
        moments_h2_ask(k, id, shape, true);
        moments_h2_send(k, SIZE_MAX);
        return;
    }
#endif
    int n = snprintf(text, sizeof text, "%s /%u.%d HTTP/1.%d\r\nHost: a\r\n%s\r\n", shape->method, id,
                     (int)(shape - moments_shapes), shape->minor,
                     shape->minor ? "" : "Connection: keep-alive\r\n");
    if (k->n == MOMENTS_PENDING || syscall(SYS_sendto, k->fd, text, (size_t)n, MSG_NOSIGNAL, NULL, 0) != n)
        return; /* the edge has closed it */
    moments_asked(k, id, shape);
}

/* Reads at most so many bytes. */
static void moments_read(moments_client *k, size_t most)
{
    while (most && k->fd >= 0 && !k->ended) {
        size_t some = most < 65536 ? most : 65536;
        if (k->cap - k->len < some) {
            k->cap = k->len + some + 65536;
            k->in = realloc(k->in, k->cap);
            MUST(k->in);
        }
        ssize_t n = recv(k->fd, k->in + k->len, some, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n <= 0) {
            k->ended = true;
            k->reset = n < 0;
            break;
        }
        k->len += (size_t)n;
        most -= (size_t)n;
    }
#ifdef SR_HTTP2
    if (!k->h2)
        return;
    size_t used = h2wire_feed(k->h2, k->in, k->len);
    if (used)
        memmove(k->in, k->in + used, k->len - used);
    k->len -= used;
    moments_h2_send(k, SIZE_MAX); /* what answers a frame */
#endif
}

typedef enum moments_verdict {
    V_NOTHING, /* not a byte */
    V_PART,    /* not all of a response: if nothing more comes, the client sees that */
    V_WHOLE,   /* the response to its request, all of it */
    V_REFUSED, /* a complete response of the edge */
    V_WRONG,
} moments_verdict;

static const char *moments_field(const char *head, size_t len, const char *name)
{
    const char *at = memmem(head, len, name, strlen(name));
    return at ? at + strlen(name) : NULL;
}

/* The response is complete; `fields` are bytes of its head. */
static moments_verdict moments_is_right(int status, unsigned id, const moments_shape *shape, long xid,
                                        size_t fields, const char *body, size_t len)
{
    if (status != 200)
        return xid < 0 ? V_REFUSED : V_WRONG;
    if (xid != (long)id || len != (*shape->method == 'H' ? 0 : moments_bytes(id, shape)))
        return V_WRONG;
    for (size_t i = 0; i < len; i++)
        if (body[i] != moments_byte(id, i))
            return V_WRONG;
    return fields < moments_count(shape, R_FIELDS) * 8000 || moments_count(shape, R_CUT) ||
                   moments_count(shape, R_UNREAD)
               ? V_WRONG
               : V_WHOLE;
}

static void moments_answered(moments_client *k, unsigned i)
{
    k->n--;
    memmove(k->asked + i, k->asked + i + 1, (k->n - i) * sizeof k->asked[0]);
}

#ifdef SR_HTTP2
/* Whether no more can come on this stream. */
static inline bool moments_h2_over(const moments_client *k, int32_t stream)
{
    const h2wire_reply *r = h2wire_find(k->h2, stream);
    return k->ended || (r && (r->ended || r->reset)) || (k->h2->goaways && stream > k->h2->last);
}

/* Judges that of asked[i], and takes it away if it is complete. */
static inline moments_verdict moments_h2_judge(moments_client *k, unsigned i, int *status)
{
    h2wire_reply *r = h2wire_find(k->h2, k->asked[i].stream);
    unsigned id = k->asked[i].id;
    const moments_shape *shape = k->asked[i].shape;
    *status = r ? r->status : 0;
    if (k->h2->wrong) {
        fprintf(stderr, "%s\n", k->h2->wrong);
        return V_WRONG;
    }
    if (!r || !r->status)
        return r && r->interims ? V_PART : V_NOTHING;
    if (r->status == 200) { /* of a part, too */
        size_t all = *shape->method == 'H' ? 0 : moments_bytes(id, shape);
        if ((r->xid != (long)id && !k->h2->blind) || r->len > all)
            return V_WRONG;
        for (; r->right < r->len; r->right++)
            if (r->body[r->right] != moments_byte(id, r->right))
                return V_WRONG;
    }
    if (!r->ended)
        return V_PART;
    if (*shape->method != 'H' && r->length >= 0 && (size_t)r->length != r->len)
        return V_WRONG;
    moments_verdict verdict = moments_is_right(r->status, id, shape, r->xid, r->head, r->body, r->len);
    h2wire_forget(k->h2, r->id);
    moments_answered(k, i);
    return verdict;
}
#endif

/* Whether no more can come of the first response. */
static inline bool moments_over(const moments_client *k)
{
#ifdef SR_HTTP2
    if (k->h2 && k->n)
        return moments_h2_over(k, k->asked[0].stream);
#endif
    return k->ended;
}

/*
 * Judges the first response, and takes it away if it is complete, which only the end of the connection may
 * tell. *status is 0 if no final head has come.
 */
static inline moments_verdict moments_judge(moments_client *k, int *status)
{
    *status = 0;
    const char *end;
    size_t head;
#ifdef SR_HTTP2
    if (k->h2)
        return k->n ? moments_h2_judge(k, 0, status) : V_NOTHING;
#endif
    for (;;) { /* interim responses are taken away at once */
        if (!k->len)
            return V_NOTHING;
        end = memmem(k->in, k->len, "\r\n\r\n", 4);
        if (!end)
            return V_PART;
        head = (size_t)(end - k->in) + 4;
        if (k->len < 13 || memcmp(k->in, "HTTP/1.1 ", 9) != 0)
            return V_WRONG;
        if (k->in[9] != '1')
            break;
        memmove(k->in, k->in + head, k->len - head);
        k->len -= head;
    }
    *status = atoi(k->in + 9);
    if (!k->n)
        return V_WRONG; /* nobody has asked for it */
    unsigned id = k->asked[0].id;
    const moments_shape *shape = k->asked[0].shape;
    const char *xid = moments_field(k->in, head, "\r\nX-Id: "),
               *length = moments_field(k->in, head, "\r\nContent-Length: ");
    bool chunked = moments_field(k->in, head, "\r\nTransfer-Encoding: chunked") != NULL;
    bool no_body = *shape->method == 'H';
    size_t at = head, got = 0;
    static char body[1 << 20];
    if (no_body) {
    } else if (chunked) {
        for (;;) {
            const char *line = at < k->len ? memmem(k->in + at, k->len - at, "\r\n", 2) : NULL;
            size_t n = line ? strtoul(k->in + at, NULL, 16) : 0, from = line ? (size_t)(line - k->in) + 2 : 0;
            if (!line || from + n + 2 > k->len)
                return V_PART;
            MUST(got + n <= sizeof body);
            memcpy(body + got, k->in + from, n);
            got += n;
            at = from + n + 2;
            if (!n)
                break;
        }
    } else if (length) {
        got = strtoul(length, NULL, 10);
        if (head + got > k->len)
            return V_PART;
        memcpy(body, k->in + head, got);
        at = head + got;
    } else { /* the close is its end */
        if (!k->ended || k->reset)
            return V_PART;
        got = k->len - head;
        memcpy(body, k->in + head, got);
        at = k->len;
    }
    moments_verdict verdict = moments_is_right(*status, id, shape, xid ? atol(xid) : -1, head, body, got);
    memmove(k->in, k->in + at, k->len - at);
    k->len -= at;
    moments_answered(k, 0);
    return verdict;
}

/* --- workers --- */

typedef struct moments_worker {
    sr_worker w; /* row; edges[0].line -1: it is not there */
    unsigned id; /* of the request at hand */
    const moments_shape *shape;
    unsigned next;  /* record of the shape */
    unsigned piece; /* DATA that were written */
    int socket;     /* of the client, which the application has; 0: it has not */
} moments_worker;

static moments_worker moments_workers[MOMENTS_ROWS];
static void (*moments_on_begin)(
    unsigned id);             /* called when a worker begins with a request; NULL: it is not */
static bool moments_any_body; /* bodies of requests need not be those of moments_byte */

static bool moments_there(const moments_worker *m)
{
    return m->w.n_open;
}

/*
 * Says hello, as sr_worker_open does. All workers are this process, which may have one row only: so the
 * others are not it for a moment. False: the edge has ended.
 */
static bool moments_hello(uint32_t row)
{
    moments_worker *m = &moments_workers[row];
    sr_worker *w = &m->w;
    sr_worker_line *l = &w->edges[0];
    int fds[SR_MESSAGE_FDS], n = 0;
    moments_inside = NULL;
    for (int i = 0; i < 4; i++) /* what the others have sent is read, and known as theirs */
        if (!moments_step())
            return false;
    _Atomic uint32_t *mine = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(mine != MAP_FAILED);
    atomic_store(mine, 1);
    *m = (moments_worker){
        .w = {.sleepers = moments_edge->sleepers, .mine = mine, .row = row, .looked = true, .look_ns = 1}};
    for (int i = 0; i < SR_EDGES_MAX; i++)
        w->edges[i] = (sr_worker_line){.line = -1, .bell = -1};
    w->epoch = atomic_load(&w->sleepers->epoch);
    for (uint32_t i = 0; i < MOMENTS_ROWS; i++)
        moments_edge->workers[i].pid = i == row ? getpid() : -1;
    sr_message note = {.kind = SR_MESSAGE_HELLO, .row = row};
    MUST(sr_door_enter(sr_door_name(moments_lobby), &l->line) == 0);
    l->line_is = sr_descriptors_what(l->line);
    MUST(sr_door_send(l->line, &note, NULL, 0, false) == 0);
    bool lives = moments_step();
    if (sr_door_receive(l->line, &note, fds, &n, false) == 0 && n == SR_MESSAGE_FDS) {
        l->pid = note.pid;
        l->bell = fds[--n];
        l->bell_is = sr_descriptors_what(l->bell);
        MUST(sr_consumer_open(&l->queue, fds[0], fds[1], fds[2], row) == 0);
        w->open[w->n_open++] = l;
    } else {
        close(l->line);
        l->line = -1;
    }
    while (n > 0)
        close(fds[--n]);
    for (uint32_t i = 0; i < MOMENTS_ROWS; i++)
        moments_edge->workers[i].pid = getpid();
    return lives;
}

/* It is killed; the edge does not know yet. */
static void moments_die(uint32_t row)
{
    moments_worker *m = &moments_workers[row];
    if (moments_there(m))
        sr_worker_close(&m->w);
    if (m->socket)
        close(m->socket);
    *m = (moments_worker){0};
}

/* Its pidfd says so. */
static void moments_died(uint32_t row)
{
    if (moments_edge->workers[row].line.fd >= 0)
        sr_crew_ended(moments_edge, &moments_edge->workers[row]);
}

/* What it is told by the request that it has begun with */
static void moments_begun(uint32_t row, const sr_worker_request *r)
{
    moments_worker *m = &moments_workers[row];
    sr_bytes target = sr_span_in(r->base, r->request->target);
    char text[64] = "";
    int shape;
    MUST(target.len < sizeof text);
    memcpy(text, target.at, target.len);
    MUST(sscanf(text, "/%u.%d", &m->id, &shape) == 2 && shape < MOMENTS_SHAPES);
    m->shape = &moments_shapes[shape];
    m->next = m->piece = 0;
    if (moments_on_begin)
        moments_on_begin(m->id);
}

/* Its body, if it has one, is its own and whole. */
static void moments_given(unsigned id, const sr_worker_request *r)
{
    static char text[1 << 16];
    size_t len = (size_t)r->slot->body_length;
    MUST(len <= sizeof text && (r->body_fd >= 0 || r->body.len == len));
    if (r->body_fd >= 0) {
        MUST(pread(r->body_fd, text, len, 0) == (ssize_t)len);
        close(r->body_fd);
    }
    for (size_t i = 0; i < len && !moments_any_body; i++)
        MUST((r->body_fd < 0 ? r->body.at : text)[i] == moments_byte(id, i));
}

/* Takes a request, if one waits and it has none. True: it has one now. */
static bool moments_take(uint32_t row)
{
    moments_worker *m = &moments_workers[row];
    if (!moments_there(m) || m->shape || !sr_consumer_waiting(&m->w.open[0]->queue) ||
        sr_consumer_oldest(&m->w.open[0]->queue) == INT64_MAX || sr_worker_next(&m->w) != SR_WORKER_REQUEST)
        return false;
    moments_begun(row, &m->w.request);
    moments_given(m->id, &m->w.request);
    return true;
}

/*
 * A file of its own, which nobody can write to any more, with the body of this request; -1: no descriptor is
 * free
 */
static int moments_file(unsigned id, size_t bytes)
{
    static char text[1 << 16];
    int fd = memfd_create("body", MFD_CLOEXEC);
    for (size_t i = 0; i < bytes; i++)
        text[i] = moments_byte(id, i);
    MUST(fd < 0 || write(fd, text, bytes) == (ssize_t)bytes);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int readable = fd < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return readable;
}

/* A record that src/worker does not write, or not at that time */
static void moments_say(sr_worker *w, uint16_t kind, const void *payload, size_t len)
{
    sr_record *r = sr_ring_reserve(w->from->queue.ring, len);
    if (!r)
        return;
    *r = (sr_record){.kind = kind, .number = w->number, .slot = w->index};
    memcpy(r + 1, payload, len);
    sr_ring_commit(w->from->queue.ring, r, len);
}

static void moments_values(sr_worker *w)
{
    uint64_t id = sr_logformat_id(moments_edge->engine->log->format);
    sr_worker_log(w, sr_bytes_of((const char *)&id, sizeof id));
}

/* Whether a worker would not wait for room, or for its client, before it writes the next record */
static bool moments_may(const moments_worker *m)
{
    if (!moments_there(m) || !m->shape)
        return false;
    uint32_t waiting = sr_ring_waiting(m->w.from->queue.ring);
    uint64_t behind = waiting + (uint64_t)atomic_load(&m->w.request.slot->backlog);
    bool gone = sr_slot_gone(m->w.request.slot, m->w.number) & SR_GONE_CLIENT;
    return waiting < SR_RING_BYTES / 2 &&
           (gone || behind <= SR_BACKLOG_MAX || m->shape->record[m->next] != R_DATA);
}

/* The application answers by itself: the first half of what it has to say, or the second. */
static void moments_speak(const moments_worker *m, bool first)
{
    char text[1000];
    size_t all = moments_bytes(m->id, m->shape);
    const sr_request *r = m->w.request.request; /* NULL: it is not read */
    const char *status = r && r->version == SR_HTTP_2 ? "101 a" : "200 OK";
    size_t n =
        (size_t)sprintf(text, "HTTP/1.1 %s\r\nX-Id: %u\r\nContent-Length: %zu\r\n\r\n", status, m->id, all);
    for (size_t i = 0; i < all; i++)
        text[n + i] = moments_byte(m->id, i);
    n += all;
    syscall(SYS_sendto, m->socket, first ? text : text + n / 2, first ? n / 2 : n - n / 2,
            MSG_NOSIGNAL | MSG_DONTWAIT, NULL, 0);
}

/* Whether the answer of the edge has come. Without a socket the application can only die. */
static bool moments_lent(moments_worker *m)
{
    sr_message note;
    int fds[SR_MESSAGE_FDS], n = 0;
    if (sr_door_receive(m->w.from->line, &note, fds, &n, false) != 0)
        return false;
    m->socket = n > 0 ? fds[0] : 0;
    while (n > 1)
        close(fds[--n]);
    return true;
}

/*
 * Writes the next record. After the last it is done with the request. False: there is none, or it would have
 * to wait.
 */
static bool moments_write(uint32_t row)
{
    moments_worker *m = &moments_workers[row];
    sr_worker *w = &m->w;
    static char text[1 << 16];
    if (!moments_may(m))
        return false;
    const moments_shape *shape = m->shape;
    if (shape->record[m->next] == R_SPEAK && !moments_lent(m))
        return false;
    size_t all = moments_bytes(m->id, shape), at = 0, some = 0;
    size_t pieces =
        moments_count(shape, R_DATA) + moments_count(shape, R_CUT); /* the last is never written */
    moments_record kind = shape->record[m->next++];
    char fields[100];
    int n = snprintf(fields, sizeof fields, "X-Id: %u\r\n", m->id);
    sr_bytes lines = sr_bytes_of(fields, (size_t)n);
    bool known = shape->framing == F_LENGTH;
    sr_reply_head head = {.status = 200,
                          .length = known ? all : SR_REPLY_LENGTH_UNKNOWN,
                          .app_length = SR_REPLY_LENGTH_UNKNOWN};
    if (kind == R_WHOLE)
        some = all;
    if (kind == R_DATA) {
        at = all * m->piece / pieces;
        some = all * (m->piece + 1) / pieces - at;
        m->piece++;
    }
    for (size_t i = 0; i < some; i++)
        text[i] = moments_byte(m->id, at + i);
    struct iovec iov = {text, some};
    switch (kind) {
    case R_LOG:
        moments_values(w);
        break;
    case R_INTERIM:
        head.status = 103;
        sr_worker_reply(w, &head, lines, NULL, 0, 0);
        break;
    case R_FIELDS: {
        static const char name[] = "X-Long: ";
        memset(text, 'a', 8000);
        memcpy(text, name, sizeof name - 1);
        memcpy(text + 7998, "\r\n", 2);
        moments_say(w, SR_REPLY_FIELDS, text, 8000);
        break;
    }
    case R_HEAD:
    case R_WHOLE:
        sr_worker_reply(w, &head, lines, &iov, kind == R_WHOLE, kind == R_WHOLE ? SR_REPLY_LAST : 0);
        break;
    case R_DATA:
        sr_worker_write(w, &iov, 1, false);
        break;
    case R_FILE: {
        int fd = moments_file(m->id, all);
        if (fd < 0 || !sr_worker_file(w, fd, 0, all)) {
            for (size_t i = 0; i < all; i++)
                text[i] = moments_byte(m->id, i);
            sr_worker_write(w, &(struct iovec){text, all}, 1, false);
        }
        if (fd >= 0)
            close(fd);
        break;
    }
    case R_END:
        sr_worker_say(w, SR_REPLY_END);
        break;
    case R_CUT:
        sr_worker_say(w, SR_REPLY_CUT);
        break;
    case R_UNREAD:
        sr_worker_unread(w, ENOMEM);
        break;
    case R_TAKE: {
        sr_message note = {.kind = SR_MESSAGE_TAKE, .row = row, .number = w->number, .slot = w->index};
        sr_door_send(w->from->line, &note, NULL, 0, false);
        break;
    }
    case R_SPEAK:
        if (m->socket)
            moments_speak(m, true);
        break;
    case R_TAKEN:
        if (m->socket) {
            moments_speak(m, false);
            close(m->socket);
        }
        sr_worker_say(w, m->socket ? SR_REPLY_TAKEN : SR_REPLY_CUT);
        m->socket = 0;
        break;
    case R_OVER:
        break;
    }
    if (!shape->record[m->next]) {
        sr_worker_done(w);
        m->shape = NULL;
        w->leaving = SR_LEAVING_NO; /* a worker that was told to leave is replaced at once */
    }
    return true;
}

#endif
