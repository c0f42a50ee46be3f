#ifndef EDGE_SITE_H
#define EDGE_SITE_H
/* edge_site: what an edge of these tests is given: memory, an address, and limits that no request meets by accident. */
#include "edge/edge.h"
#include "edge/settings.h"
#include "share/door.h"
#include "share/memory.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static int lobby, sleepers_fd, listener, report[2], control[2];
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
    return !sr_door_lobby(&lobby) && !pipe(report) && !pipe(control) &&
           !bind(listener, (struct sockaddr *)&address, len) && !listen(listener, 100) &&
           !getsockname(listener, (struct sockaddr *)&address, &len);
}

static inline sr_settings site_settings(void)
{
    sr_settings s;
    sr_settings_init(&s);
    s.lobby = lobby;
    s.sleepers = sleepers_fd;
    s.control = control[0];
    s.report = report[1];
    s.graceful_ns = SR_SECOND;
    s.n_listeners = 1;
    s.config = edge_config();
    s.listeners[0].fd = listener;
    return s;
}

#endif
