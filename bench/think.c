#define _GNU_SOURCE
/*
 * think: a closed-loop client whose connections think between requests. It prints the latency of the fast
 * requests.
 *
 *   think PORT CONNECTIONS THINK_MS SLOW_PER_MILLE SECONDS [FAST_PATH SLOW_PATH]
 *
 * Every connection is kept alive; a request is slow with a chance of SLOW_PER_MILLE / 1000. Think times are
 * uniform between 0.5 and 1.5 times THINK_MS. One line of name=value pairs, in ms.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUF = 65536 };

typedef struct conn {
    int fd;
    int64_t next; /* when to send */
    int64_t sent; /* 0: thinking */
    int slow;
    unsigned long done;
} conn;

static conn *conns;
static int n_conns, port, think_ms, slow_mille;
static const char *fast_path = "/", *slow_path = "/slow";
static double *latency;
static size_t n_latency, cap_latency;
static unsigned long errors, slow_done, reconnects;
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

static void dial(conn *c, int ep)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&a, sizeof a) < 0) {
        perror("connect");
        exit(1);
    }
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev);
}

static void plan(conn *c)
{
    c->sent = 0;
    c->next = now_ns() + (int64_t)(think_ms * 1e6 * (0.5 + random_unit()));
}

static void ask(conn *c)
{
    char req[256];
    c->slow = random_unit() * 1000 < slow_mille;
    int n = snprintf(req, sizeof req, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     c->slow ? slow_path : fast_path);
    c->sent = now_ns();
    if (write(c->fd, req, (size_t)n) != n)
        errors++;
}

static void record(conn *c)
{
    c->done++;
    if (c->slow) {
        slow_done++;
        return;
    }
    if (n_latency == cap_latency)
        latency = realloc(latency, (cap_latency = cap_latency ? cap_latency * 2 : 65536) * sizeof *latency);
    latency[n_latency++] = (double)(now_ns() - c->sent) / 1e6;
}

/* Responses are small: each arrives in one piece. */
static void answered(conn *c, int ep)
{
    static char buf[BUF];
    ssize_t n = read(c->fd, buf, sizeof buf - 1);
    if (n <= 0) {
        if (c->sent)
            errors++;
        reconnects++;
        close(c->fd);
        dial(c, ep);
        plan(c);
        return;
    }
    buf[n] = '\0';
    if (!c->sent)
        return;
    if (strncmp(buf, "HTTP/1.1 200", 12) != 0)
        errors++;
    record(c);
    plan(c);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(double q)
{
    return n_latency ? latency[(size_t)(q * (double)(n_latency - 1))] : 0;
}

static void report(double seconds)
{
    unsigned long least = ~0UL, most = 0;
    for (int i = 0; i < n_conns; i++) {
        least = conns[i].done < least ? conns[i].done : least;
        most = conns[i].done > most ? conns[i].done : most;
    }
    qsort(latency, n_latency, sizeof *latency, by_value);
    printf("fast=%zu slow=%lu errors=%lu reconnects=%lu rate=%.0f p50=%.2f p90=%.2f p99=%.2f p99.9=%.2f "
           "max=%.2f least=%lu most=%lu\n",
           n_latency, slow_done, errors, reconnects, (double)(n_latency + slow_done) / seconds, quantile(0.5),
           quantile(0.9), quantile(0.99), quantile(0.999), quantile(1), least, most);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr,
                "usage: think PORT CONNECTIONS THINK_MS SLOW_PER_MILLE SECONDS [FAST_PATH SLOW_PATH]\n");
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
    int ep = epoll_create1(0);
    conns = calloc((size_t)n_conns, sizeof *conns);
    for (int i = 0; i < n_conns; i++) {
        dial(&conns[i], ep);
        plan(&conns[i]);
    }
    int64_t end = now_ns() + (int64_t)(seconds * 1e9);
    for (int64_t now = now_ns(); now < end; now = now_ns()) {
        int64_t first = end;
        for (int i = 0; i < n_conns; i++) {
            if (!conns[i].sent && conns[i].next <= now)
                ask(&conns[i]);
            if (!conns[i].sent && conns[i].next < first)
                first = conns[i].next;
        }
        struct timespec t = {.tv_sec = 0, .tv_nsec = first > now ? (first - now) % 1000000000 : 0};
        struct epoll_event ev[64];
        int n = epoll_pwait2(ep, ev, 64, &t, NULL);
        for (int i = 0; i < n; i++)
            answered(ev[i].data.ptr, ep);
    }
    report(seconds);
    return errors ? 1 : 0;
}
