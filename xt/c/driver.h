#ifndef DRIVER_H
#define DRIVER_H
/*
 * driver: an edge with its workers, without Perl. Edge and workers are processes that this one forks, the
 * application is `serve` below, clients are blocking sockets of the caller. Paths of the application:
 *
 *   /            the slot of the worker
 *   /sleep/MS    the same after a while
 *   /echo        the request's body
 *   /big/N       N bytes in one piece                /file/N      N bytes of a file
 *   /stream/N    N bytes, written in pieces of 10,000
 *   /cut         a response that is broken off       /io          the socket is taken, and closed
 *   /held        200 when the test lets it go on     /held/hint   the same behind a 103
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edge/edge.h"
#include "net/tempfile.h"
#include "tap.h"
#include "worker/worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 8, PATIENCE_S = 10 };

/* What all processes of a site see. */
typedef struct common {
    _Atomic int go_on; /* /held may return */
    _Atomic uint32_t calls;
} common;

typedef struct site {
    sr_setup settings;
    sr_scoreboard *board;
    common *common;
    size_t pending; /* bytes of memory that responses seem to have from the start */
    int lifeline[2], report[2];
    uint16_t port;
    pid_t edge, workers[WORKERS_MAX];
} site;

static inline char pattern(size_t i)
{
    return (char)('a' + i % 23 + (i >> 12) % 3);
}

static inline void fill_pattern(char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        at[i] = pattern(i);
}

static inline void sleep_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&t, &t) < 0 && errno == EINTR)
        ;
}

static inline double ms_since(int64_t start)
{
    return (double)(sr_clock_monotonic() - start) / 1e6;
}

/* --- the application --- */

static inline void answer(sr_worker *w, const char *body, size_t len)
{
    char fields[50];
    sr_reply_head head = {.status = 200, .length = len, .app_length = SR_REPLY_LENGTH_UNKNOWN};
    int n = snprintf(fields, sizeof fields, "X-Slot: %u\r\n", w->row);
    sr_worker_reply(w, &head, sr_bytes_of(fields, (size_t)n), NULL, 0, 0);
    for (size_t at = 0; at < len; at += 10000) {
        struct iovec piece = {(char *)(uintptr_t)body + at, len - at < 10000 ? len - at : 10000};
        sr_worker_write(w, &piece, 1, false);
    }
    sr_worker_say(w, SR_REPLY_END);
}

static inline void answer_large(sr_worker *w, const char *how, size_t len)
{
    char *body = malloc(len + 1), fields[50];
    fill_pattern(body, len);
    if (*how == 'b') {
        answer(w, body, len);
        free(body);
        return;
    }
    sr_reply_head head = {.status = 200, .length = len, .app_length = SR_REPLY_LENGTH_UNKNOWN};
    int n = snprintf(fields, sizeof fields, "X-Slot: %u\r\n", w->row);
    sr_worker_reply(w, &head, sr_bytes_of(fields, (size_t)n), NULL, 0, 0);
    if (*how == 's') {
        bool ok = true;
        for (size_t at = 0; ok && at < len; at += 10000) {
            struct iovec piece = {body + at, len - at < 10000 ? len - at : 10000};
            ok = sr_worker_write(w, &piece, 1, true);
        }
    } else {
        int fd = sr_tempfile_open("/tmp");
        if (fd < 0 || sr_tempfile_write(fd, body, len) < 0)
            abort();
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int reads = open(path, O_RDONLY | O_CLOEXEC); /* with a handle that writes there is no lease */
        close(fd);
        if (!sr_worker_file(w, reads, 0, len)) {
            if (ON_LINUX)
                abort();
            sr_worker_write(w, &(struct iovec){body, len}, 1,
                            false); /* without leases, as xs/wire.c does it */
        }
        close(reads);
    }
    free(body);
    sr_worker_say(w, SR_REPLY_END);
}

static inline void hold(const site *s, sr_worker *w)
{
    sr_worker_flush(w);
    while (!atomic_load(&s->common->go_on))
        sleep_ms(5);
}

static inline void take_socket(sr_worker *w)
{
    int fd = -1, ahead = -1;
    uint32_t bytes;
    if (!sr_worker_socket(w, &fd, &ahead, &bytes))
        abort();
    close(fd);
    if (ahead >= 0)
        close(ahead);
    sr_worker_say(w, SR_REPLY_TAKEN);
}

static inline void serve(const site *s, sr_worker *w, const sr_worker_request *r)
{
    char path[64], slot[16], *body = NULL;
    size_t len = r->request->path.len, body_len = (size_t)r->slot->body_length;
    if (len >= sizeof path)
        len = sizeof path - 1;
    memcpy(path, r->base + r->request->path.at, len);
    path[len] = '\0';
    int number = atoi(strrchr(path, '/') + 1);
    if (body_len) {
        body = malloc(body_len);
        if (r->body_fd < 0)
            memcpy(body, r->body.at, body_len);
        else if (pread(r->body_fd, body, body_len, 0) != (ssize_t)body_len)
            abort();
    }
    if (r->body_fd >= 0)
        close(r->body_fd);
    atomic_fetch_add(&s->common->calls, 1);
    if (strncmp(path, "/sleep/", 7) == 0)
        sleep_ms(number);
    if (strcmp(path, "/held/hint") == 0)
        sr_worker_reply(w, &(sr_reply_head){.status = 103}, SR_BYTES("Link: </a>\r\n"), NULL, 0, 0);
    if (strncmp(path, "/held", 5) == 0)
        hold(s, w);
    if (strcmp(path, "/echo") == 0) {
        answer(w, body, body_len);
    } else if (strncmp(path, "/big/", 5) == 0 || strncmp(path, "/stream/", 8) == 0 ||
               strncmp(path, "/file/", 6) == 0) {
        answer_large(w, path + 1, (size_t)number);
    } else if (strcmp(path, "/cut") == 0) {
        sr_reply_head head = {.status = 200, .length = 99, .app_length = SR_REPLY_LENGTH_UNKNOWN};
        sr_worker_reply(w, &head, (sr_bytes){0}, &(struct iovec){(void *)"half", 4}, 1, 0);
        sr_worker_say(w, SR_REPLY_CUT);
    } else if (strcmp(path, "/io") == 0) {
        take_socket(w);
    } else {
        answer(w, slot, (size_t)snprintf(slot, sizeof slot, "%u", w->row));
    }
    free(body);
}

static inline _Noreturn void run_worker(const site *s, uint32_t slot)
{
    sr_worker w;
    const sr_worker_request *r = &w.request;
    sr_worker_what what;
    sr_sleepers *sleepers =
        mmap(NULL, SR_SLEEPERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, s->settings.sleepers, 0);
    sr_worker_config config = {.sleepers = sleepers, .row = slot};
    sr_row *row = &s->board->rows[slot];
    close(s->lifeline[1]);
    if (sr_worker_open(&w, &config))
        abort();
    while ((what = sr_worker_next(&w)) != SR_WORKER_DONE) {
        if (what != SR_WORKER_REQUEST)
            continue;
        sr_counters_add(&row->counters.requests, 1);
        sr_histogram_add(&row->counters.queue, 0);
        sr_row_begin(row, sr_span_in(r->base, r->request->method), sr_span_in(r->base, r->request->target),
                     &r->slot->client, r->slot->ready_at);
        serve(s, &w, r);
        sr_row_end(row);
        sr_worker_done(&w);
    }
    sr_worker_close(&w);
    _exit(0);
}

/* --- sites --- */

static inline sr_config config_default(void)
{
    return (sr_config){
        .request = {.line = 8192, .head = 65536, .fields = 100},
        .max_body = 1 << 24,
        .body_memory = 65536,
        .header_ns = 10 * SR_SECOND,
        .idle_ns = 10 * SR_SECOND,
        .body_ns = 10 * SR_SECOND,
        .body_rate = 100,
        .write_ns = 10 * SR_SECOND,
        .linger_ns = SR_SECOND,
        .keepalive = true,
        .max_connections = 10000,
        .max_queue = 1000,
        .queue_ns = 10 * SR_SECOND,
        .report_fd = -1,
        .tmpdir = "/tmp",
        .server = SR_BYTES("driver"),
    };
}

/* A process of its own, which ends with this one. */
static inline pid_t process(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
    }
    return pid;
}

static inline _Noreturn void run_edge(site *s)
{
    sr_edge *edge;
    close(s->lifeline[1]);
    if (sr_edge_new(&edge, &s->settings) != 0)
        abort();
    edge->engine->pending = s->pending;
    sr_edge_run(edge);
    sr_edge_free(edge);
    exit(0); /* so that leaks are told */
}

static inline int listener(uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 4096) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        abort();
    *port = ntohs(a.sin_port);
    return fd;
}

static inline int sleepers_new(void)
{
    int fd = memfd_create("sleepers", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, SR_SLEEPERS_BYTES) != 0)
        abort();
    sr_sleepers *at = mmap(NULL, SR_SLEEPERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sr_sleepers_init(at, WORKERS_MAX);
    munmap(at, SR_SLEEPERS_BYTES);
    return fd;
}

static inline void worker_start(site *s, uint32_t slot)
{
    if (!(s->workers[slot] = process()))
        run_worker(s, slot);
}

static inline void worker_kill(site *s, uint32_t slot)
{
    if (s->workers[slot]) {
        kill(s->workers[slot], SIGKILL);
        waitpid(s->workers[slot], NULL, 0);
    }
    s->workers[slot] = 0;
}

/* An edge and so many workers. */
static inline void site_open(site *s, const sr_config *config, uint32_t workers)
{
    size_t pending = s->pending;
    memset(s, 0, sizeof *s);
    s->pending = pending;
    signal(SIGPIPE, SIG_IGN);
    s->board = sr_scoreboard_new(WORKERS_MAX, 1);
    s->common = mmap(NULL, sizeof *s->common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!s->board || s->common == MAP_FAILED || pipe(s->lifeline) != 0 || pipe(s->report) != 0)
        abort();
    sr_setup_init(&s->settings);
    s->settings.config = *config;
    s->settings.sleepers = sleepers_new();
    s->settings.lifeline = s->lifeline[0];
    s->settings.report = s->report[1];
    s->settings.scoreboard = s->board->memfd;
    s->settings.graceful_ns = 10 * SR_SECOND;
    s->settings.n_listeners = 1;
    s->settings.listeners[0].fd = listener(&s->port);
    if (sr_door_lobby(&s->settings.lobby) != 0)
        abort();
    if (!(s->edge = process()))
        run_edge(s);
    for (uint32_t slot = 0; slot < workers; slot++)
        worker_start(s, slot);
}

/* The edge is told to end, as if the supervisor were gone. */
static inline void site_drain(site *s)
{
    if (s->lifeline[1] >= 0)
        close(s->lifeline[1]);
    s->lifeline[1] = -1;
}

/* True: it has ended by itself, and well. */
static inline bool site_ended(site *s)
{
    int status = -1;
    for (int i = 0; s->edge && i < PATIENCE_S * 100; i++) {
        if (waitpid(s->edge, &status, WNOHANG) == s->edge) {
            s->edge = 0;
            return status == 0;
        }
        sleep_ms(10);
    }
    return false;
}

static inline void site_close(site *s)
{
    if (s->edge) {
        kill(s->edge, SIGKILL);
        waitpid(s->edge, NULL, 0);
    }
    for (uint32_t slot = 0; slot < WORKERS_MAX; slot++)
        worker_kill(s, slot);
    site_drain(s);
    const int fds[] = {s->lifeline[0],    s->report[0],         s->report[1],
                       s->settings.lobby, s->settings.sleepers, s->settings.listeners[0].fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        close(fds[i]);
    munmap(s->common, sizeof *s->common);
    sr_scoreboard_free(s->board);
    s->pending = 0;
}

static inline sr_row *edge_row(const site *s)
{
    return &s->board->rows[s->board->slots];
}

/* The application has had n calls */
static inline bool called(const site *s, uint32_t n)
{
    for (int i = 0; i < 2000 && atomic_load(&s->common->calls) != n; i++)
        sleep_ms(5);
    return atomic_load(&s->common->calls) == n;
}

/* --- clients --- */

typedef struct client {
    int fd;
    char *in;
    size_t len, cap;
    bool ended;  /* end of file or reset has come */
    bool reset;  /* and it was a reset */
    int slot;    /* of the worker that made the last response */
    bool closes; /* which said Connection: close */
    const char *body;
    size_t body_len;
} client;

static inline client client_open(const site *s, int rcvbuf)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(s->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    client c = {.fd = socket(AF_INET, SOCK_STREAM, 0), .slot = -1};
    int one = 1;
    if (rcvbuf)
        setsockopt(c.fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
    setsockopt(c.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(c.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(c.fd, (struct sockaddr *)&a, sizeof a) < 0)
        abort();
    return c;
}

static inline void client_close(client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->in);
    *c = (client){.fd = -1};
}

static inline bool client_send(client *c, const char *at, size_t len)
{
    while (len) {
        ssize_t n = send(c->fd, at, len, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static inline bool client_get(client *c, const char *path)
{
    char request[200];
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    return client_send(c, request, (size_t)n);
}

static inline bool client_read(client *c)
{
    if (c->cap - c->len < 65536 + 1)
        c->in = realloc(c->in, c->cap = c->cap * 2 + 131072);
    ssize_t n = recv(c->fd, c->in + c->len, 65536, 0);
    if (n > 0) {
        c->len += (size_t)n;
        c->in[c->len] = '\0';
        return true;
    }
    c->ended = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    c->reset = n < 0 && c->ended;
    return false;
}

/* Status of the next response, 0: none came, -1: a part of one. The body is valid until the next call. */
static inline int client_response(client *c)
{
    if (c->body) { /* take the last one */
        size_t used = (size_t)(c->body + c->body_len - c->in);
        memmove(c->in, c->in + used, c->len - used);
        c->len -= used;
        c->in[c->len] = '\0';
        c->body = NULL;
    }
    char *end = NULL;
    for (size_t head = 0, body = 0;;) {
        if (!end && c->len && (end = strstr(c->in, "\r\n\r\n"))) {
            *end = '\0';
            char *length = strstr(c->in, "Content-Length: "), *slot = strstr(c->in, "X-Slot: ");
            c->closes = strstr(c->in, "Connection: close") != NULL;
            c->slot = slot ? atoi(slot + 8) : -1;
            body = length ? (size_t)atol(length + 16) : 0;
            *end = '\r';
            head = (size_t)(end + 4 - c->in);
        }
        if (end && c->len >= head + body) {
            c->body = c->in + head;
            c->body_len = body;
            return atoi(c->in + 9);
        }
        if (!client_read(c))
            return c->len ? -1 : 0;
    }
}

static inline int client_ask(client *c, const char *path)
{
    return client_get(c, path) ? client_response(c) : 0;
}

/* Nothing more comes but the end */
static inline bool client_ends(client *c)
{
    if (c->body && c->len != (size_t)(c->body + c->body_len - c->in))
        return false;
    while (!c->ended)
        if (client_read(c) || !c->ended)
            return false;
    return true;
}

static inline bool has_pattern(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (at[i] != pattern(i))
            return false;
    return true;
}

#endif
