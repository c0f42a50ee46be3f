/*
 * floor: what the kernel alone costs. One thread, no parsing, fixed bytes; every server is measured against
 * it.
 *
 *   floor [-c] [-b BYTES] PORT
 *
 * Without -c: level-triggered epoll, one read and one write for each wake-up of a connection, one response
 * for each blank line seen. With -c: epoll_wait, accept4, read, write, close. -b sets the length of the
 * body.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 256, MAX_FD = 65536, MAX_PIPELINED = 64 };

static char *response;       /* MAX_PIPELINED times the same, so that many go out in one write */
static size_t response_len;  /* of one */
static uint8_t seen[MAX_FD]; /* bytes of CR LF CR LF that ended the last read of this descriptor */

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void make_response(size_t body_len, bool closing)
{
    static const char hello[] = "Hello World";
    char head[256];
    int head_len = snprintf(head, sizeof head,
                            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                            "Date: Sun, 01 Nov 2026 00:00:00 GMT\r\n%s\r\n",
                            body_len ? body_len : sizeof hello - 1, closing ? "Connection: close\r\n" : "");
    size_t len = body_len ? body_len : sizeof hello - 1;
    response_len = (size_t)head_len + len;
    response = malloc(response_len * MAX_PIPELINED);
    if (!response)
        fail("malloc");
    memcpy(response, head, (size_t)head_len);
    if (body_len)
        memset(response + head_len, 'x', len);
    else
        memcpy(response + head_len, hello, len);
    for (size_t i = 1; i < MAX_PIPELINED; i++)
        memcpy(response + i * response_len, response, response_len);
}

static int listen_on(uint16_t port, bool blocking)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
        setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof on) ||
        bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, SOMAXCONN))
        fail("listen");
    return fd;
}

/* Blank lines in these bytes, the first of which may have begun in the bytes before. */
static size_t count_requests(const char *at, size_t len, uint8_t *state)
{
    static const char end[] = "\r\n\r\n";
    size_t count = 0;
    uint8_t matched = *state;
    for (size_t i = 0; i < len; i++) {
        matched = at[i] == end[matched] ? (uint8_t)(matched + 1) : at[i] == '\r';
        if (matched == 4) {
            matched = 0;
            count++;
        }
    }
    *state = matched;
    return count;
}

static bool wants_close(char *at, size_t len)
{
    if (memmem(at, len, " HTTP/1.0\r", 10))
        return !memmem(at, len, "eep-", 4);
    return memmem(at, len, "onnection: close", 16) != NULL;
}

static void serve(int fd)
{
    static char bytes[65536];
    ssize_t got = read(fd, bytes, sizeof bytes);
    if (got <= 0) {
        close(fd);
        return;
    }
    size_t requests = count_requests(bytes, (size_t)got, &seen[fd]);
    if (!requests)
        return;
    if (requests > MAX_PIPELINED)
        requests = MAX_PIPELINED;
    size_t len = requests * response_len;
    if (write(fd, response, len) != (ssize_t)len || wants_close(bytes, (size_t)got))
        close(fd);
}

static void keep_alive(int listener)
{
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[EVENTS], event = {.events = EPOLLIN, .data.fd = listener};
    if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, listener, &event))
        fail("epoll");
    for (;;) {
        int ready = epoll_wait(ep, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd != listener) {
                serve(events[i].data.fd);
                continue;
            }
            int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0 || fd >= MAX_FD)
                continue;
            seen[fd] = 0;
            event.data.fd = fd;
            if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event))
                fail("epoll_ctl");
        }
    }
}

static void close_each(int listener)
{
    static char bytes[65536];
    int ep = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, listener, &event))
        fail("epoll");
    for (;;) {
        epoll_wait(ep, &event, 1, -1);
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        if (read(fd, bytes, sizeof bytes) > 0 && write(fd, response, response_len) < 0)
            perror("write");
        close(fd);
    }
}

int main(int argc, char **argv)
{
    bool closing = false;
    size_t body_len = 0;
    int option;
    while ((option = getopt(argc, argv, "cb:")) != -1) {
        if (option == 'c')
            closing = true;
        else if (option == 'b')
            body_len = strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    if (optind + 1 != argc) {
        fputs("usage: floor [-c] [-b BYTES] PORT\n", stderr);
        return 2;
    }
    make_response(body_len, closing);
    int listener = listen_on((uint16_t)atoi(argv[optind]), closing);
    if (closing)
        close_each(listener);
    else
        keep_alive(listener);
}
