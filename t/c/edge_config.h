#ifndef EDGE_CONFIG_H
#define EDGE_CONFIG_H
/* edge_config: what an edge of these tests is told: limits that no request meets by accident. */
#include "conn/engine.h"

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

#endif
