#ifndef SR_CONFIG_H
#define SR_CONFIG_H
/* config: what the operator decided. Copied into the engine at its start and never changed after. */
#include "../http/forwarded.h"
#include "../net/cidr.h"

typedef struct sr_config {
    sr_request_limits request;
    uint64_t max_body;           /* bytes of one request body; past it 413 */
    size_t body_memory;          /* a larger body goes to a temporary file */
    int64_t header_ns;           /* for a whole request head: 408 */
    int64_t idle_ns;             /* a kept connection without a request: closed */
    int64_t body_ns;             /* the window in which body_rate is judged */
    uint32_t body_rate;          /* bytes per second a body must bring on average: 408 */
    int64_t write_ns;            /* without progress of a response: closed */
    int64_t linger_ns;           /* reading on after a final response, RFC 9112 9.6 */
    uint32_t max_keepalive_reqs; /* requests on one connection, 0: no limit */
    bool keepalive;
    uint64_t max_connections; /* of this process; at least 1 */
    bool sheds_unfinished;    /* with none idle: the oldest unfinished one makes room, or newcomers wait */
    uint64_t max_queue;       /* complete requests that wait; past it 503 */
    int64_t queue_ns;         /* that a complete request may wait: 503; 0: no limit */
    int64_t request_ns;       /* from a complete request to the start of its response: 504; 0: no limit */
    int64_t stream_ns;        /* without anything new of a response that has begun: cut; 0: no limit */
    int report_fd;            /* where the supervisor is told of trouble; -1: there is none */
    const char *tmpdir;       /* NUL-terminated; the embedder keeps it alive */
    sr_bytes server;          /* value of the Server field, len 0: none; kept alive by the embedder */

    /* proxies in front */
    bool proxy_protocol; /* each connection begins with its header; from a trusted peer, if there are any */
    sr_cidrs trusted;    /* peers that are believed; n 0: nobody */
    bool trusted_underscores;    /* request.underscores is for these peers only */
    sr_forwarded_kind forwarded; /* the fields in which they name a client */
    bool x_forwarded_host;       /* of SR_FORWARDED_X, is believed as well */
} sr_config;

#endif
