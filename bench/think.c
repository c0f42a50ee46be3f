#define _GNU_SOURCE
/*
 * think: a closed-loop client whose connections think between requests. It prints the latency of the fast
 * requests.
 *
 *   think PORT CONNECTIONS THINK_MS SLOW_PER_MILLE SECONDS [FAST_PATH SLOW_PATH [close] [tls]]
 *
 * Every connection is kept alive while the server keeps it; with "close" each request has one of its own, and
 * connecting is part of its latency. With "tls" the connections are encrypted; a handshake is a full one, and
 * part of connecting. Those that are kept make it before the measurement begins, so that it has none.
 *
 * A request is slow with a chance of SLOW_PER_MILLE / 1000. Think times are uniform between 0.5 and 1.5 times
 * THINK_MS. A fast request without an answer at the end counts with the time it has waited, if that is more
 * than 10 ms. One line of name=value pairs, in ms; served is how many connections had an answer at all. quiet
 * is the number of seconds in which the host of a virtual machine took at most 1 % of the processor time away
 * (steal of /proc/stat); their fast requests are measured again.
 */
#include <errno.h>
#include <netinet/in.h>
#ifdef BENCH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUF = 16384, RETRY_NS = 10000000, WAITED_NS = 10000000 };

typedef struct conn {
    int fd;       /* -1: none */
    int64_t next; /* when to send */
    int64_t sent; /* 0: thinking */
    int slow;
    bool connecting; /* the request is sent when that is done, and the handshake */
    void *ssl;       /* NULL: plain, or not connected */
    bool shaking;
    char request[256]; /* a string */
    unsigned long done;
    size_t got;    /* bytes of the response in buf, of which the head and small bodies fit */
    char buf[BUF]; /* a string */
} conn;

static conn *conns;
static int n_conns, port, think_ms, slow_mille;
static const char *fast_path = "/", *slow_path = "/slow";
static struct sample {
    double ms;
    size_t second; /* of the run, in which it ended */
} * latency;
static size_t n_latency, cap_latency;
static long *stolen; /* ticks, of each second of the run */
static size_t n_stolen;
static unsigned long errors, slow_done, reconnects, waiting;
static bool closing;
static void *tls; /* the context; NULL: plain */
static int64_t started;
static unsigned seed = 12345;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static double random_unit(void)
{
    seed = seed * 1103515245u + 12345u;
    return (double)((seed >> 8) & 0xffff) / 65536;
}

/* Since the start of the machine, of all processors */
static long stolen_ticks(void)
{
    long ticks = 0;
    FILE *f = fopen("/proc/stat", "r");
    if (!f)
        return 0;
    if (fscanf(f, "cpu %*d %*d %*d %*d %*d %*d %*d %ld", &ticks) != 1)
        ticks = 0;
    fclose(f);
    return ticks;
}

/* Called often: closes the seconds that are over */
static void count_stolen(int64_t since_start)
{
    static long before;
    if (n_stolen == 0 && before == 0)
        before = stolen_ticks();
    size_t over = (size_t)(since_start / 1000000000);
    if (over == n_stolen)
        return;
    long now = stolen_ticks();
    stolen = realloc(stolen, over * sizeof *stolen);
    while (n_stolen < over)
        stolen[n_stolen++] = now - before;
    before = now;
}

static bool is_quiet(size_t second)
{
    return second < n_stolen && stolen[second] * 100 <= sysconf(_SC_NPROCESSORS_ONLN) * sysconf(_SC_CLK_TCK);
}

/* --- the transport --- */

#ifdef BENCH_TLS

static void *tls_context(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    return ctx;
}

static ssize_t tls_result(conn *c, int r)
{
    int why = r > 0 ? 0 : SSL_get_error(c->ssl, r);
    errno = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? EAGAIN : ECONNRESET;
    return r > 0 ? r : why == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

/* 1: complete; -1 with errno, EAGAIN: it waits for the server */
static ssize_t tls_shake(conn *c)
{
    if (!c->ssl) {
        c->ssl = SSL_new(tls);
        SSL_set_fd(c->ssl, c->fd);
        SSL_set_connect_state(c->ssl);
    }
    ERR_clear_error();
    return tls_result(c, SSL_do_handshake(c->ssl));
}

static ssize_t tls_read(conn *c, void *to, size_t len)
{
    ERR_clear_error();
    return tls_result(c, SSL_read(c->ssl, to, (int)len));
}

static ssize_t tls_write(conn *c, const void *at, size_t len)
{
    ERR_clear_error();
    return tls_result(c, SSL_write(c->ssl, at, (int)len));
}

static void tls_free(conn *c)
{
    SSL_free(c->ssl);
    c->ssl = NULL;
}

#else

static void *tls_context(void)
{
    fprintf(stderr, "think: built without OpenSSL\n");
    exit(2);
}

static ssize_t tls_shake(conn *c)
{
    (void)c;
    return -1;
}

static ssize_t tls_read(conn *c, void *to, size_t len)
{
    return read(c->fd, to, len);
}

static ssize_t tls_write(conn *c, const void *at, size_t len)
{
    return send(c->fd, at, len, MSG_NOSIGNAL);
}

static void tls_free(conn *c)
{
    (void)c;
}

#endif

/* --- connections --- */

static bool dial(conn *c, int ep)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    c->connecting = connect(c->fd, (struct sockaddr *)&a, sizeof a) < 0;
    c->shaking = tls && !c->connecting;
    if (c->connecting && errno != EINPROGRESS) {
        close(c->fd);
        c->fd = -1;
        return false;
    }
    struct epoll_event ev = {.events = c->connecting ? EPOLLOUT : EPOLLIN, .data.ptr = c};
    epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev);
    return true;
}

static void hang_up(conn *c)
{
    tls_free(c);
    c->shaking = false;
    close(c->fd);
    c->fd = -1;
    reconnects++;
}

static void plan(conn *c)
{
    c->sent = 0;
    c->next = now_ns() + (int64_t)(think_ms * 1e6 * (0.5 + random_unit()));
}

static void fail(conn *c)
{
    errors++;
    hang_up(c);
    plan(c);
}

static void send_request(conn *c)
{
    ssize_t n = (ssize_t)strlen(c->request);
    if ((tls ? tls_write(c, c->request, (size_t)n) : send(c->fd, c->request, (size_t)n, MSG_NOSIGNAL)) != n)
        fail(c);
}

static void shake(conn *c)
{
    ssize_t r = tls_shake(c);
    c->shaking = r < 0 && errno == EAGAIN;
    if (r > 0)
        send_request(c);
    else if (!c->shaking)
        fail(c);
}

/* A full queue of the listening socket makes a connection wait, which is a part of its latency */
static void connected(conn *c, int ep)
{
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        fail(c);
        return;
    }
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev);
    c->connecting = false;
    if (tls)
        shake(c);
    else
        send_request(c);
}

static void ask(conn *c, int ep)
{
    int64_t began = now_ns();
    if (c->fd < 0 && !dial(c, ep)) {
        errors++;
        c->next = began + RETRY_NS;
        return;
    }
    c->slow = random_unit() * 1000 < slow_mille;
    snprintf(c->request, sizeof c->request, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n",
             c->slow ? slow_path : fast_path, closing ? "Connection: close\r\n" : "");
    c->sent = began;
    c->got = 0;
    if (c->shaking)
        shake(c);
    else if (!c->connecting)
        send_request(c);
}

/* Connects, and makes the handshake, for a request to come; a failure is left to that. */
static void connect_first(conn *c, int ep)
{
    struct timespec pause = {.tv_nsec = 100000};
    if (!dial(c, ep))
        return;
    for (int i = 0; i < 20000; i++) {
        ssize_t r = tls_shake(c);
        if (r > 0 || errno != EAGAIN)
            break;
        nanosleep(&pause, NULL);
    }
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev);
    c->connecting = c->shaking = false;
}

static void add_latency(int64_t sent, int64_t now)
{
    if (n_latency == cap_latency)
        latency = realloc(latency, (cap_latency = cap_latency ? cap_latency * 2 : 65536) * sizeof *latency);
    latency[n_latency++] =
        (struct sample){.ms = (double)(now - sent) / 1e6, .second = (size_t)((now - started) / 1000000000)};
}

static void record(conn *c)
{
    c->done++;
    if (strncmp(c->buf, "HTTP/1.", 7) != 0 || strncmp(c->buf + 8, " 200", 4) != 0)
        errors++;
    if (c->slow)
        slow_done++;
    else
        add_latency(c->sent, now_ns());
}

/*
 * Whether the response is whole; *last: the server closes now. Bodies are small and never look like a head.
 */
static bool is_whole(const conn *c, bool eof, bool *last)
{
    const char *end = strstr(c->buf, "\r\n\r\n");
    if (!end)
        return false;
    const char *length = strcasestr(c->buf, "\r\nContent-Length:");
    bool chunked = strcasestr(c->buf, "\r\nTransfer-Encoding: chunked") != NULL;
    *last = eof || closing || strncmp(c->buf, "HTTP/1.1", 8) != 0 ||
            strcasestr(c->buf, "\r\nConnection: close") != NULL;
    if (length)
        return c->got >= (size_t)(end + 4 - c->buf) + strtoul(length + 17, NULL, 10);
    return chunked ? c->got > 5 && strcmp(c->buf + c->got - 5, "0\r\n\r\n") == 0 : eof;
}

static void answered(conn *c)
{
    ssize_t n =
        tls ? tls_read(c, c->buf + c->got, BUF - 1 - c->got) : read(c->fd, c->buf + c->got, BUF - 1 - c->got);
    bool last = false;
    if (n < 0 && errno == EAGAIN)
        return;
    if (n > 0)
        c->got += (size_t)n;
    c->buf[c->got] = '\0';
    if (c->sent && is_whole(c, n <= 0, &last)) {
        record(c);
        plan(c);
        if (last)
            hang_up(c);
    } else if (n <= 0 || c->got == BUF - 1) {
        if (c->sent)
            fail(c);
        else
            hang_up(c);
    }
}

static int by_value(const void *a, const void *b)
{
    double x = ((const struct sample *)a)->ms, y = ((const struct sample *)b)->ms;
    return x < y ? -1 : x > y;
}

static double quantile(double q)
{
    return n_latency ? latency[(size_t)(q * (double)(n_latency - 1))].ms : 0;
}

static void report_quiet(void)
{
    size_t seconds = 0, n = 0;
    for (size_t i = 0; i < n_stolen; i++)
        seconds += is_quiet(i);
    for (size_t i = 0; i < n_latency; i++)
        if (is_quiet(latency[i].second))
            latency[n++] = latency[i];
    n_latency = n;
    printf(" quiet=%zu quiet_fast=%zu quiet_p50=%.3f quiet_p99=%.3f quiet_p99.9=%.3f\n", seconds, n,
           quantile(0.5), quantile(0.99), quantile(0.999));
}

static void report(double seconds)
{
    unsigned long least = ~0UL, most = 0, served = 0;
    for (int i = 0; i < n_conns; i++) {
        least = conns[i].done < least ? conns[i].done : least;
        most = conns[i].done > most ? conns[i].done : most;
        served += conns[i].done > 0;
    }
    qsort(latency, n_latency, sizeof *latency, by_value);
    printf("fast=%zu slow=%lu errors=%lu reconnects=%lu rate=%.0f p50=%.3f p90=%.3f p99=%.3f p99.9=%.3f "
           "max=%.3f least=%lu most=%lu waiting=%lu served=%lu",
           n_latency - waiting, slow_done, errors, reconnects,
           (double)(n_latency - waiting + slow_done) / seconds, quantile(0.5), quantile(0.9), quantile(0.99),
           quantile(0.999), quantile(1), least, most, waiting, served);
    report_quiet();
}

static void run(int ep, int64_t end)
{
    for (int64_t now = now_ns(); now < end; now = now_ns()) {
        int64_t first = end;
        count_stolen(now - started);
        for (int i = 0; i < n_conns; i++) {
            if (!conns[i].sent && conns[i].next <= now)
                ask(&conns[i], ep);
            if (!conns[i].sent && conns[i].next < first)
                first = conns[i].next;
        }
        now = now_ns();
        int64_t wait = first > now ? first - now : 0;
        struct timespec t = {.tv_sec = wait / 1000000000, .tv_nsec = wait % 1000000000};
        struct epoll_event ev[64];
        int n = epoll_pwait2(ep, ev, 64, &t, NULL);
        for (int i = 0; i < n; i++) {
            conn *c = ev[i].data.ptr;
            if (c->connecting)
                connected(c, ep);
            else if (c->shaking)
                shake(c);
            else
                answered(c);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: think PORT CONNECTIONS THINK_MS SLOW_PER_MILLE SECONDS [FAST_PATH SLOW_PATH "
                        "[close] [tls]]\n");
        return 2;
    }
    port = atoi(argv[1]);
    n_conns = atoi(argv[2]);
    think_ms = atoi(argv[3]);
    slow_mille = atoi(argv[4]);
    double seconds = atof(argv[5]);
    if (argc > 7) {
        fast_path = argv[6];
        slow_path = argv[7];
    }
    for (int i = 8; i < argc; i++) {
        closing = closing || strcmp(argv[i], "close") == 0;
        if (strcmp(argv[i], "tls") == 0)
            tls = tls_context();
    }
    int ep = epoll_create1(0);
    conns = calloc((size_t)n_conns, sizeof *conns);
    for (int i = 0; i < n_conns; i++) {
        conns[i].fd = -1;
        if (tls && !closing)
            connect_first(&conns[i], ep);
    }
    for (int i = 0; i < n_conns; i++)
        plan(&conns[i]);
    started = now_ns();
    int64_t end = started + (int64_t)(seconds * 1e9);
    run(ep, end);
    count_stolen(end - started);
    for (int i = 0; i < n_conns; i++)
        if (conns[i].sent && !conns[i].slow && end - conns[i].sent > WAITED_NS) {
            waiting++;
            add_latency(conns[i].sent, end);
        }
    report(seconds);
    return errors ? 1 : 0;
}
