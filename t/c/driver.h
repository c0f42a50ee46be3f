#ifndef DRIVER_H
#define DRIVER_H
/*
 * driver: engines without Perl. Each worker is an engine in a thread of its own, the application is `serve` below, clients
 * are blocking sockets of the calling thread. Paths of the application:
 *
 *   /            the slot of the worker
 *   /sleep/MS    the same after a while
 *   /echo        the request's body
 *   /big/N       N bytes in one piece                /file/N      N bytes of a file
 *   /stream/N    N bytes, written in pieces of 10,000
 *   /cut         a response that is broken off       /fork/MS     a child lives on for a while
 */
#include "base/clock.h"
#include "core/companion.h"
#include "core/parts.h"
#include "net/tempfile.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS_MAX = 8, PATIENCE_S = 10 };

typedef struct worker {
    sr_engine *e;
    pthread_t thread;
    uint32_t slot;
    _Atomic int64_t back_ns; /* the longest wait for the helm */
    _Atomic uint64_t calls;
    _Atomic pid_t child; /* forked last */
} worker;

typedef struct site {
    sr_config config;
    sr_scoreboard *board;
    sr_exchange exchange;
    int listener;
    uint16_t port;
    worker workers[WORKERS_MAX];
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

static inline void answer(worker *w, sr_conn *c, const char *body, size_t len)
{
    char head[200];
    c->keep_alive = sr_engine_keeps(w->e, c);
    int n = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nX-Slot: %u\r\n%s\r\n", len,
                     w->slot, c->keep_alive ? "" : "Connection: close\r\n");
    sr_engine_head(c, 200, (size_t)n);
    struct iovec iov[2] = {{head, (size_t)n}, {(void *)body, len}};
    sr_engine_send(w->e, c, iov, c->is_head ? 1 : 2);
    sr_engine_finish(w->e, c);
}

static inline void answer_large(worker *w, sr_conn *c, const char *how, size_t len)
{
    char *body = malloc(len + 1), head[200];
    fill_pattern(body, len);
    if (*how == 'b') {
        answer(w, c, body, len);
        free(body);
        return;
    }
    c->keep_alive = sr_engine_keeps(w->e, c);
    int n = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nX-Slot: %u\r\n\r\n", len,
                     w->slot);
    sr_engine_head(c, 200, (size_t)n);
    struct iovec iov = {head, (size_t)n};
    if (*how == 's') {
        bool ok = sr_engine_write(w->e, c, &iov, 1);
        for (size_t at = 0; ok && at < len; at += 10000) {
            iov = (struct iovec){body + at, len - at < 10000 ? len - at : 10000};
            ok = sr_engine_write(w->e, c, &iov, 1);
        }
    } else {
        int fd = sr_tempfile_open("/tmp");
        if (fd < 0 || sr_tempfile_write(fd, body, len) < 0)
            abort();
        sr_engine_send_file(w->e, c, &iov, 1, fd, 0, len);
    }
    free(body);
    sr_engine_finish(w->e, c);
}

static inline void fork_child(worker *w, int ms)
{
    atomic_store(&w->e->scoreboard->app_forks, 1);
    pid_t pid = fork();
    if (pid == 0) {
        w->e->forked = true;
        sleep_ms(ms);
        _exit(0);
    }
    atomic_store(&w->child, pid);
}

static inline void serve(worker *w, sr_task *task)
{
    sr_engine *e = w->e;
    sr_conn *c = task->conn;
    char path[64], slot[16], *body = NULL;
    size_t len = task->request->path.len, body_len = (size_t)task->body_length;
    if (len >= sizeof path)
        len = sizeof path - 1;
    memcpy(path, task->base + task->request->path.at, len);
    path[len] = '\0';
    int number = atoi(strrchr(path, '/') + 1);
    if (body_len) {
        body = malloc(body_len);
        if (task->body_fd < 0)
            memcpy(body, task->body.at, body_len);
        else if (pread(task->body_fd, body, body_len, 0) != (ssize_t)body_len)
            abort();
    }
    if (task->body_fd >= 0)
        close(task->body_fd);
    sr_engine_lend(e);
    atomic_fetch_add(&w->calls, 1);
    if (strncmp(path, "/sleep/", 7) == 0)
        sleep_ms(number);
    if (strncmp(path, "/fork/", 6) == 0)
        fork_child(w, number);
    int64_t over = sr_clock_monotonic();
    sr_engine_return(e);
    over = sr_clock_monotonic() - over;
    if (over > atomic_load(&w->back_ns))
        atomic_store(&w->back_ns, over);
    if (strcmp(path, "/echo") == 0) {
        answer(w, c, body, body_len);
    } else if (strncmp(path, "/big/", 5) == 0 || strncmp(path, "/stream/", 8) == 0 ||
               strncmp(path, "/file/", 6) == 0) {
        answer_large(w, c, path + 1, (size_t)number);
    } else if (strcmp(path, "/cut") == 0) {
        struct iovec iov = {(void *)"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", 43};
        sr_engine_head(c, 200, 39);
        sr_engine_send(e, c, &iov, 1);
        sr_engine_abort(e, c);
    } else {
        answer(w, c, slot, (size_t)snprintf(slot, sizeof slot, "%u", w->slot));
    }
    free(body);
}

static inline void *worker_main(void *arg)
{
    worker *w = arg;
    sr_task task;
    sr_next what;
    while ((what = sr_engine_next(w->e, &task)) != SR_NEXT_DONE)
        if (what == SR_NEXT_REQUEST)
            serve(w, &task);
    sr_engine_lend(w->e);
    return NULL;
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
        .companion = true,
        .tmpdir = "/tmp",
        .server = SR_BYTES("driver"),
    };
}

static inline void site_open(site *s, const sr_config *config, uint32_t slots)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    memset(s, 0, sizeof *s);
    signal(SIGPIPE, SIG_IGN);
    s->config = *config;
    s->board = sr_scoreboard_new(slots + WORKERS_MAX, 0); /* room for successors */
    s->exchange = (sr_exchange){-1, -1};
    if (!s->board || (slots > 1 && sr_exchange_open(&s->exchange) != 0))
        abort();
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bind(s->listener, (struct sockaddr *)&a, sizeof a) < 0 || listen(s->listener, 4096) < 0 ||
        getsockname(s->listener, (struct sockaddr *)&a, &len) < 0)
        abort();
    s->port = ntohs(a.sin_port);
}

static inline worker *worker_new(site *s, uint32_t slot)
{
    worker *w = &s->workers[slot];
    *w = (worker){.slot = slot};
    if (sr_engine_new(&w->e, &s->config, s->board, slot, -1) != 0)
        abort();
    sr_engine_listen(w->e, s->listener, false);
    sr_engine_exchange(w->e, s->exchange.give, s->exchange.take);
    if (s->config.companion && sr_companion_start(w->e) != 0)
        abort();
    return w;
}

static inline worker *worker_start(site *s, uint32_t slot)
{
    worker *w = worker_new(s, slot);
    if (pthread_create(&w->thread, NULL, worker_main, w) != 0)
        abort();
    return w;
}

static inline void worker_end(worker *w)
{
    if (w->e) {
        pthread_join(w->thread, NULL);
        sr_engine_free(w->e);
    }
    w->e = NULL;
}

static inline void site_close(site *s)
{
    for (int i = 0; i < WORKERS_MAX; i++)
        if (s->workers[i].e)
            sr_engine_stop(s->workers[i].e);
    for (int i = 0; i < WORKERS_MAX; i++)
        worker_end(&s->workers[i]);
    close(s->listener);
    sr_exchange_close(&s->exchange);
    sr_scoreboard_free(s->board);
}

/* --- clients --- */

typedef struct client {
    int fd;
    char *in;
    size_t len, cap;
    bool ended;  /* end of file or reset has come */
    bool reset;  /* and it was a reset */
    int slot;    /* of the worker that sent the last response */
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
