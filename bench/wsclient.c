/*
 * wsclient: WebSockets that send a text each and wait for its echo. Prints messages a second, and times in
 * ms.
 *   wsclient PORT CONNECTIONS SECONDS [PATH [BYTES [RATE]]]
 * RATE: messages a second of all together; without, each connection sends the next as soon as the echo has
 * come.
 */
#define _GNU_SOURCE
#include "loopback.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { BUFFER = 70000, BUCKETS = 1 << 20 };

typedef struct client {
    int fd;
    int64_t sent_at; /* 0: it waits for its next turn */
    size_t have;
    char in[];
} client;

static uint32_t times[BUCKETS]; /* by 10 us */
static uint64_t n_echoes;
static char message[BUFFER];
static size_t message_len, payload;

static int open_one(int port, const char *path)
{
    char text[1024];
    int fd = connect_to(port),
        n = snprintf(
            text, sizeof text,
            "GET %s HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nOrigin: http://a\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            path);
    if (write(fd, text, (size_t)n) != n)
        fail("write");
    size_t have = 0;
    while (have < 4 || memcmp(text + have - 4, "\r\n\r\n", 4) != 0) {
        if (have == sizeof text || read(fd, text + have, 1) != 1)
            fail("no answer to the opening");
        have++;
    }
    if (memcmp(text, "HTTP/1.1 101", 12) != 0) {
        fprintf(stderr, "%.*s", (int)have, text);
        exit(1);
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void make_message(void)
{
    static const unsigned char mask[4] = {1, 2, 3, 4};
    size_t n = 0;
    message[n++] = (char)0x81;
    message[n++] = (char)(0x80 | (payload < 126 ? payload : 126));
    if (payload >= 126) {
        message[n++] = (char)(payload >> 8);
        message[n++] = (char)payload;
    }
    memcpy(message + n, mask, 4);
    n += 4;
    for (size_t i = 0; i < payload; i++)
        message[n++] = (char)('a' ^ mask[i % 4]);
    message_len = n;
}

static void send_one(client *c)
{
    c->sent_at = now();
    if (write(c->fd, message, message_len) != (ssize_t)message_len)
        fail("write");
}

/* True: an echo is complete. */
static int receive(client *c)
{
    size_t want = payload + (payload < 126 ? 2 : 4);
    ssize_t n = read(c->fd, c->in + c->have, want - c->have);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        fail("read");
    c->have += (size_t)n;
    if (c->have >= 2 && (unsigned char)c->in[0] != 0x81) {
        if ((unsigned char)c->in[0] == 0x89) { /* a ping */
            c->have = 0;
            return 0;
        }
        fprintf(stderr, "frame %02x\n", (unsigned char)c->in[0]);
        exit(1);
    }
    if (c->have < want)
        return 0;
    c->have = 0;
    return 1;
}

static double at(double part)
{
    uint64_t sum = 0;
    for (int i = 0; i < BUCKETS; i++)
        if ((sum += times[i]) >= (uint64_t)(part * (double)n_echoes))
            return i / 100.0;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    int port = atoi(argv[1]), n = atoi(argv[2]);
    double seconds = atof(argv[3]), rate = argc > 6 ? atof(argv[6]) : 0;
    const char *path = argc > 4 ? argv[4] : "/";
    payload = argc > 5 ? (size_t)atoi(argv[5]) : 32;
    make_message();
    int ep = epoll_create1(0);
    client **all = calloc((size_t)n, sizeof *all);
    for (int i = 0; i < n; i++) {
        all[i] = calloc(1, sizeof **all + payload + 16);
        all[i]->fd = open_one(port, path);
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = all[i]};
        epoll_ctl(ep, EPOLL_CTL_ADD, all[i]->fd, &ev);
    }
    fprintf(stderr, "%d are open\n", n);
    int64_t begin = now(), end = begin + (int64_t)(seconds * 1e9), due = begin;
    for (int i = 0; !rate && i < n; i++)
        send_one(all[i]);
    for (int next = 0; now() < end;) {
        for (int64_t t = now(); rate && due <= t; due += (int64_t)(1e9 / rate)) {
            client *c = all[next++ % n];
            if (!c->sent_at)
                send_one(c);
        }
        struct epoll_event ev[256];
        int got = epoll_wait(ep, ev, 256, rate ? 1 : 100);
        for (int i = 0; i < got; i++) {
            client *c = ev[i].data.ptr;
            if (!receive(c))
                continue;
            int64_t took = (now() - c->sent_at) / 10000;
            times[took < BUCKETS ? took : BUCKETS - 1]++;
            n_echoes++;
            c->sent_at = 0;
            if (!rate)
                send_one(c);
        }
    }
    printf("%d connections: %.0f messages/s, p50 %.2f ms, p99 %.2f ms, p99.9 %.2f ms\n", n,
           (double)n_echoes / ((double)(now() - begin) / 1e9), at(0.5), at(0.99), at(0.999));
    return 0;
}
