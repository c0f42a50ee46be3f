#ifndef EDGE_SITE_H
#define EDGE_SITE_H
/*
 * edge_site: what an edge of these tests is given: memory, an address, and limits that no request meets by
 * accident. The edge may be in the process of the test, which turns its loop.
 */
#include "edge/edge.h"
#include "edge/setup.h"
#include "share/door.h"
#include "share/memory.h"
#include "worker/worker.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000 };

static int lobby, sleepers_fd, listener, report[2], lifeline[2];
static struct sockaddr_in address; /* of the listener */

static inline sr_config edge_config(void)
{
    return (sr_config){.request = {.line = 1000, .head = 20000, .fields = 50},
                       .max_body = 100000,
                       .body_memory = 50000,
                       .header_ns = 60 * SR_SECOND,
                       .idle_ns = 60 * SR_SECOND,
                       .body_ns = 60 * SR_SECOND,
                       .write_ns = 60 * SR_SECOND,
                       .linger_ns = SR_SECOND,
                       .keepalive = true,
                       .max_connections = 1000,
                       .max_queue = 100,
                       .report_fd = -1,
                       .tmpdir = "/tmp"};
}

static inline bool site_open(uint32_t rows)
{
    socklen_t len = sizeof address;
    sr_sleepers *s = sr_memory_new("sleepers", SR_SLEEPERS_BYTES, &sleepers_fd);
    sr_memory_seal(sleepers_fd, false);
    sr_sleepers_init(s, rows);
    address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    return !sr_door_lobby(&lobby) && !pipe(report) && !pipe(lifeline) &&
           !bind(listener, (struct sockaddr *)&address, len) && !listen(listener, 100) &&
           !getsockname(listener, (struct sockaddr *)&address, &len);
}

static inline sr_setup site_settings(void)
{
    sr_setup s;
    sr_setup_init(&s);
    s.lobby = lobby;
    s.sleepers = sleepers_fd;
    s.lifeline = lifeline[0];
    s.report = report[1];
    s.graceful_ns = SR_SECOND;
    s.n_listeners = 1;
    s.config = edge_config();
    s.listeners[0].fd = listener;
    return s;
}

/* In this process, and the only one that workers find. */
static inline sr_edge *edge_new(void)
{
    sr_setup s = site_settings();
    sr_edge *edge;
    if (sr_edge_new(&edge, &s))
        exit(9);
    sr_sleepers_arrive(edge->sleepers, edge->number, edge->name);
    return edge;
}

/* In a process of its own: a worker in this row. */
static inline void worker_open(sr_worker *w, uint32_t row)
{
    sr_sleepers *s = mmap(NULL, SR_SLEEPERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, sleepers_fd, 0);
    sr_worker_config config = {.sleepers = s, .row = row};
    if (sr_worker_open(w, &config))
        _exit(8);
}

static inline bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

/* Turns the loop until a byte has come there. */
static inline bool turn_until(sr_edge *ed, int fd)
{
    char byte;
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        sr_edge_step(ed, false);
        if (readable(fd, 1))
            return read(fd, &byte, 1) == 1;
    }
    return false;
}

static inline int client_of(const char *request)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ssize_t len = (ssize_t)strlen(request);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        write(fd, request, (size_t)len) != len)
        exit(9);
    return fd;
}

#endif
