/*
 * subscribers: streams that listen. Prints "open" when each has the head of its response, and then, each time
 * that all of them have got another message (a byte '#'), the time of the last one in ns of CLOCK_MONOTONIC.
 *   cc -O2 -o /tmp/subscribers bench/subscribers.c && /tmp/subscribers PORT CONNECTIONS [PATH]
 * With "bare" as the first word it is the server, which sends a message to all for each line of its standard
 * input, and does nothing else:
 *   /tmp/subscribers bare PORT CONNECTIONS
 */
#define _GNU_SOURCE
#include "loopback.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 512, CHUNK = 16384 };

static const char HEAD[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char MESSAGE[] = "9\r\ndata: #\n\n\r\n";

static int open_one(int port, const char *path)
{
    char text[4096];
    int fd = connect_to(port);
    int n =
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n", path);
    if (write(fd, text, (size_t)n) != n)
        fail("write");
    ssize_t got = read(fd, text, sizeof text - 1);
    if (got < 12 || memcmp(text, "HTTP/1.1 200", 12) != 0) {
        fprintf(stderr, "%.*s\n", got > 0 ? (int)got : 0, text);
        exit(1);
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    struct linger reset = {.l_onoff =
                               1}; /* no TIME_WAIT of thousands, which the next measurement would meet */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    return fd;
}

static uint64_t messages_of(int fd)
{
    char in[CHUNK];
    uint64_t n = 0;
    ssize_t got;
    do {
        got = read(fd, in, sizeof in);
        if (got == 0) {
            fprintf(stderr, "the server has closed a stream\n");
            exit(1);
        }
        for (const char *at = in; got > 0 && (at = memchr(at, '#', (size_t)(in + got - at))); at++)
            n++;
    } while (got == CHUNK);
    return n;
}

static void listen_to_all(int port, uint64_t n, const char *path)
{
    struct epoll_event events[EVENTS];
    uint64_t messages = 0, all = n;
    int poll = epoll_create1(0);
    for (uint64_t i = 0; i < n; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.fd = open_one(port, path)};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, e.data.fd, &e) != 0)
            fail("epoll_ctl");
    }
    printf("open\n");
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++)
            messages += messages_of(events[i].data.fd);
        if (messages >= all) {
            printf("%lld\n", (long long)now());
            all += n;
        }
    }
}

static void serve_bare(int port, int n)
{
    int *fds = calloc((size_t)n, sizeof *fds), on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = address(port);
    char line[64];
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (!fds || bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1024) != 0)
        fail("bind");
    printf("listens\n");
    for (int i = 0; i < n; i++) {
        fds[i] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (write(fds[i], HEAD, sizeof HEAD - 1) < 0)
            fail("accept");
    }
    while (fgets(line, sizeof line, stdin))
        for (int i = 0; i < n; i++)
            send(fds[i], MESSAGE, sizeof MESSAGE - 1, MSG_NOSIGNAL);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 4 && strcmp(argv[1], "bare") == 0)
        serve_bare(atoi(argv[2]), atoi(argv[3]));
    else if (argc >= 3)
        listen_to_all(atoi(argv[1]), strtoull(argv[2], NULL, 10), argc > 3 ? argv[3] : "/");
    else
        fprintf(stderr,
                "usage: subscribers PORT CONNECTIONS [PATH]\n       subscribers bare PORT CONNECTIONS\n");
    return 1;
}
