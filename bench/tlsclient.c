#define _GNU_SOURCE
/*
 * tlsclient: clients of TLS 1.3 on 127.0.0.1, for what wrk can't measure. Each prints a line of name=value
 * pairs; times are in ms.
 *
 *   tlsclient handshakes PORT CONNECTIONS SECONDS [resume]
 *       so many at a time, each of which connects, completes a handshake, ends its side and waits until the
 *       server has ended the connection. Without "resume" the handshakes are full ones.
 *   tlsclient flood PORT CONNECTIONS SECONDS
 *       so many at a time, each of which connects, sends the same ClientHello as all others, and resets the
 *       connection when the server has answered it: all the work is the server's.
 *   tlsclient fresh PORT SECONDS [PATH [plain]]
 *       new clients, one after the other, with a pause of 2 ms: the time of all, and of the request alone.
 *   tlsclient hold PORT COUNT
 *       opens connections, each of which is served once, prints a line, and holds them until its standard
 *       input ends; then asks each of them again.
 *   tlsclient download PORT PATH [plain]
 */
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { REFUSALS = 3 }; /* then a server serves no more connections at a time */
enum { PATIENCE_SECONDS = 5, PAUSE_US = 2000, BUF = 256 * 1024, EVENTS = 64 };

typedef enum state { CONNECTING, SHAKING, ENDING } state;

typedef struct conn {
    int fd;
    SSL *ssl;
    state state;
} conn;

static int port, ep;
static SSL_CTX *ctx;
static SSL_SESSION *session; /* NULL: full handshakes */
static char hello[4096];
static size_t hello_len; /* 0: complete handshakes */
static unsigned long done, resumed, failed;
static char buf[BUF];

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what)
{
    fprintf(stderr, "tlsclient: %s: %s\n", what, strerror(errno));
    ERR_print_errors_fp(stderr);
    exit(1);
}

static int dial(int flags)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    if (fd < 0)
        die("socket");
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

static SSL *client(int fd)
{
    SSL *ssl = SSL_new(ctx);
    SSL_SESSION *copy = session ? SSL_SESSION_dup(session) : NULL; /* OpenSSL uses each once */
    if (!ssl || !SSL_set_fd(ssl, fd) || (session && !SSL_set_session(ssl, copy)))
        die("SSL_new");
    SSL_SESSION_free(copy);
    SSL_set_connect_state(ssl);
    return ssl;
}

/* --- many at a time --- */

static void watch(conn *c, int how, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = c};
    epoll_ctl(ep, how, c->fd, &ev);
}

static void begin(conn *c)
{
    c->fd = dial(SOCK_NONBLOCK);
    if (c->fd < 0)
        die("connect");
    c->state = CONNECTING;
    watch(c, EPOLL_CTL_ADD, EPOLLOUT);
}

static void over(conn *c, bool fine)
{
    done += fine;
    failed += !fine;
    SSL_free(c->ssl);
    c->ssl = NULL;
    close(c->fd);
    begin(c);
}

static void shake(conn *c)
{
    ERR_clear_error();
    int r = SSL_do_handshake(c->ssl);
    if (r == 1) {
        resumed += SSL_session_reused(c->ssl);
        SSL_shutdown(c->ssl);
        shutdown(c->fd, SHUT_WR);
        c->state = ENDING;
    } else if (SSL_get_error(c->ssl, r) != SSL_ERROR_WANT_READ) {
        over(c, false);
    }
}

/* Answered by the server: reset, so that it has nothing more to do, and no port waits. */
static void reset(conn *c)
{
    struct linger now = {.l_onoff = 1};
    ssize_t n = read(c->fd, buf, sizeof buf);
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    over(c, n > 0);
}

static void event(conn *c)
{
    switch (c->state) {
    case CONNECTING:
        c->state = SHAKING;
        watch(c, EPOLL_CTL_MOD, EPOLLIN);
        if (!hello_len) {
            c->ssl = client(c->fd);
            shake(c);
        } else if (send(c->fd, hello, hello_len, MSG_NOSIGNAL) != (ssize_t)hello_len) {
            over(c, false);
        }
        break;
    case SHAKING:
        if (hello_len)
            reset(c);
        else
            shake(c);
        break;
    case ENDING:
        for (;;) {
            ssize_t n = read(c->fd, buf, sizeof buf);
            if (n < 0 && errno == EAGAIN)
                return;
            if (n > 0)
                continue;
            over(c, n == 0);
            return;
        }
    }
}

static void many(int n_conns, double seconds)
{
    conn *conns = calloc((size_t)n_conns, sizeof *conns);
    double began = now_ms(), end = began + seconds * 1e3, now;
    ep = epoll_create1(0);
    for (int i = 0; i < n_conns; i++)
        begin(&conns[i]);
    while ((now = now_ms()) < end) {
        struct epoll_event ev[EVENTS];
        int n = epoll_wait(ep, ev, EVENTS, (int)(end - now) + 1);
        for (int i = 0; i < n; i++)
            event(ev[i].data.ptr);
    }
    double took = (now - began) / 1e3;
    printf("handshakes=%lu resumed=%lu failed=%lu seconds=%.3f rate=%.0f\n", done, resumed, failed, took,
           (double)done / took);
}

static int keep_session(SSL *ssl, SSL_SESSION *s)
{
    (void)ssl;
    SSL_SESSION_free(session);
    session = SSL_SESSION_dup(s); /* s ends with its connection */
    return 0;
}

/* The first flight of a client */
static void make_hello(void)
{
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    SSL_set_connect_state(ssl);
    SSL_do_handshake(ssl);
    int n = BIO_read(out, hello, sizeof hello);
    if (n <= 0)
        die("ClientHello");
    hello_len = (size_t)n;
    SSL_free(ssl);
}

/* --- one at a time --- */

typedef struct peer {
    int fd;
    SSL *ssl; /* NULL: plain */
} peer;

static void hang_up(peer *p)
{
    SSL_free(p->ssl);
    if (p->fd >= 0)
        close(p->fd);
    *p = (peer){.fd = -1};
}

static bool open_peer(peer *p, bool plain)
{
    struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    *p = (peer){.fd = dial(0)};
    if (p->fd < 0)
        return false;
    setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (plain)
        return true;
    p->ssl = client(p->fd);
    return SSL_do_handshake(p->ssl) == 1;
}

static ssize_t take(peer *p, char *to, size_t len)
{
    return p->ssl ? SSL_read(p->ssl, to, (int)len) : read(p->fd, to, len);
}

static bool send_request(peer *p, const char *path)
{
    char text[512];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    return p->ssl ? SSL_write(p->ssl, text, n) == n : send(p->fd, text, (size_t)n, MSG_NOSIGNAL) == n;
}

/* Reads a response of 200 with a Content-Length. Returns the length of its body; -1: there was none. */
static int64_t response(peer *p)
{
    size_t got = 0;
    char *end = NULL;
    while (!end && got < sizeof buf - 1) {
        ssize_t n = take(p, buf + got, sizeof buf - 1 - got);
        if (n <= 0)
            return -1;
        got += (size_t)n;
        buf[got] = 0;
        end = strstr(buf, "\r\n\r\n");
    }
    const char *length = end ? strcasestr(buf, "\r\nContent-Length:") : NULL;
    if (!length || strncmp(buf, "HTTP/1.1 200", 12) != 0)
        return -1;
    int64_t size = strtoll(length + 17, NULL, 10), have = (int64_t)got - (end + 4 - buf);
    while (have < size) {
        ssize_t n = take(p, buf, sizeof buf);
        if (n <= 0)
            return -1;
        have += n;
    }
    return size;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *name, double *ms, size_t n)
{
    qsort(ms, n, sizeof *ms, by_value);
    const double at[] = {0.5, 0.99, 1};
    const char *of[] = {"p50", "p99", "max"};
    for (size_t i = 0; i < 3; i++)
        printf(" %s%s=%.3f", name, of[i], n ? ms[(size_t)(at[i] * (double)(n - 1))] : 0);
}

static void fresh(double seconds, const char *path, bool plain)
{
    size_t n = 0, room = 0;
    double *all = NULL, *request = NULL, end = now_ms() + seconds * 1e3;
    do {
        peer p;
        double began = now_ms();
        bool open = open_peer(&p, plain);
        double ready = now_ms();
        bool fine = open && send_request(&p, path) && response(&p) >= 0;
        if (n == room) {
            room = room ? 2 * room : 1024;
            all = realloc(all, room * sizeof *all);
            request = realloc(request, room * sizeof *request);
        }
        all[n] = now_ms() - began;
        request[n++] = now_ms() - ready;
        failed += !fine;
        hang_up(&p);
        if (seconds > 0)
            usleep(PAUSE_US);
    } while (now_ms() < end);
    printf("clients=%zu failed=%lu", n, failed);
    print_times("", all, n);
    print_times("request_", request, n);
    printf("\n");
}

static void hold(int count)
{
    peer *peers = calloc((size_t)count, sizeof *peers);
    int opened = 0, usable = 0;
    for (int i = 0; i < count; i++)
        peers[i].fd = -1;
    for (int i = 0; i < count && i - opened < REFUSALS; i++) {
        bool fine = open_peer(&peers[i], false) && send_request(&peers[i], "/") && response(&peers[i]) >= 0;
        if (fine)
            opened++;
        else
            hang_up(&peers[i]);
    }
    printf("opened=%d\n", opened);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    for (int i = 0; i < count; i++)
        usable += peers[i].fd >= 0 && send_request(&peers[i], "/") && response(&peers[i]) >= 0;
    printf("usable=%d\n", usable);
}

static void download(const char *path, bool plain)
{
    peer p;
    if (!open_peer(&p, plain))
        die("connect");
    double began = now_ms();
    int64_t size = send_request(&p, path) ? response(&p) : -1;
    double took = (now_ms() - began) / 1e3;
    if (size < 0)
        die("no response of 200");
    printf("bytes=%lld seconds=%.4f rate=%.1f\n", (long long)size, took, (double)size / took / 1048576);
}

/* --- the command line --- */

static void make_context(void)
{
    ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION))
        die("SSL_CTX_new");
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE,
                       NULL); /* the signature of the handshake is verified all the same */
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}

static void get_session(void)
{
    peer p;
    SSL_CTX_sess_set_new_cb(ctx, keep_session);
    bool fine =
        open_peer(&p, false) && send_request(&p, "/") && response(&p) >= 0; /* tickets come before it */
    SSL_CTX_sess_set_new_cb(ctx, NULL);
    if (!fine || !session)
        die("no session to resume");
    hang_up(&p);
}

static bool said(int argc, char **argv, int at, const char *word)
{
    return argc > at && strcmp(argv[at], word) == 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 3 ? argv[1] : "";
    signal(SIGPIPE, SIG_IGN);
    port = argc > 2 ? atoi(argv[2]) : 0;
    make_context();
    if (strcmp(mode, "handshakes") == 0 && argc > 4) {
        if (said(argc, argv, 5, "resume"))
            get_session();
        many(atoi(argv[3]), atof(argv[4]));
    } else if (strcmp(mode, "flood") == 0 && argc > 4) {
        make_hello();
        many(atoi(argv[3]), atof(argv[4]));
    } else if (strcmp(mode, "fresh") == 0) {
        fresh(atof(argv[3]), argc > 4 ? argv[4] : "/", said(argc, argv, 5, "plain"));
    } else if (strcmp(mode, "hold") == 0) {
        hold(atoi(argv[3]));
    } else if (strcmp(mode, "download") == 0) {
        SSL_CTX_set_read_ahead(ctx, 1);
        download(argv[3], said(argc, argv, 4, "plain"));
    } else {
        fprintf(stderr, "usage: tlsclient handshakes|flood PORT CONNECTIONS SECONDS [resume]\n"
                        "       tlsclient fresh PORT SECONDS [PATH [plain]]\n"
                        "       tlsclient hold PORT COUNT\n"
                        "       tlsclient download PORT PATH [plain]\n");
        return 2;
    }
    return failed ? 1 : 0;
}
