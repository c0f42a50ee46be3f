#ifndef BENCH_LOOPBACK_H
#define BENCH_LOOPBACK_H
/* loopback: what the clients of measurements have in common. A failure ends the program, which says why. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static inline int64_t now(void) /* monotonic ns */
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void fail(const char *what)
{
    perror(what);
    exit(1);
}

static inline struct sockaddr_in address(int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
    return a;
}

static inline int connect_to(int port)
{
    struct sockaddr_in to = address(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

#endif
