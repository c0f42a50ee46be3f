#ifndef SR_CONFIG_H
#define SR_CONFIG_H
/*
 * config: the operator's settings for connections. Copied into the engine when it is made, and never changed
 * afterwards.
 */
#include "../http/forwarded.h"
#include "../net/cidr.h"

/* Who gets the informational responses (1xx) of applications; nobody for HEAD or HTTP/1.0. */
typedef enum sr_informational {
    SR_INFORMATIONAL_DIRECT, /* clients that are no proxy, as far as is known */
    SR_INFORMATIONAL_ON,
    SR_INFORMATIONAL_OFF,
    SR_INFORMATIONAL_KINDS,
} sr_informational;

typedef struct sr_config {
    sr_request_limits request;
    uint64_t max_body;           /* bytes of one request body; more is 413 */
    size_t body_memory;          /* bytes; a larger body goes to a temporary file */
    int64_t handshake_ns;        /* for a TLS handshake, from accept on; then it is closed */
    int64_t header_ns;           /* for a whole request head; then 408 */
    int64_t idle_ns;             /* for a kept connection without a request; then it is closed */
    int64_t body_ns;             /* the time over which body_rate is measured */
    uint32_t body_rate;          /* bytes per second that a body must bring on average; else 408 */
    int64_t write_ns;            /* without progress of a response; then the connection is closed */
    int64_t linger_ns;           /* reading on after the last response, RFC 9112 9.6 */
    uint32_t max_keepalive_reqs; /* requests on one connection; 0: no limit */
    bool keepalive;
    uint64_t max_connections; /* of all edges together; at least 1 */
    bool sheds_unfinished;    /* when none is idle, close the oldest unfinished connection for a new one */
    uint64_t max_queue;       /* complete requests that wait, of all edges together; more is 503 */
    int64_t queue_ns;         /* that a complete request may wait; then 503; 0: no limit */
    bool serves_half_closed;  /* a request that waits, although its client has shut down its side */
    int64_t request_ns;       /* from a complete request to the head of its response; then 504; 0: no limit */
    int64_t stream_ns;        /* without more of a response that has begun; then it is cut; 0: no limit */
    uint64_t hold_buffer;     /* bytes that the client of a held response may be behind; then it is closed */
    uint64_t websocket_max;   /* bytes of a message of a client; more is SR_CLOSE_TOO_LARGE */
    uint32_t websocket_rate;  /* messages of a client in a second; 0: no limit */
    int64_t
        websocket_ping_ns;    /* so often a client that says nothing is asked whether it is there; 0: never */
    uint32_t hold_per_client; /* held connections of one address; 0: no limit */
    int report_fd;            /* pipe that wakes the supervisor (trouble.h); -1: none */
    uint64_t max_temp;        /* bytes of all temporary files of all edges; 0: no limit */
    const char *tmpdir;       /* NUL-terminated; the caller keeps it alive */
    sr_bytes server;          /* value of the Server field; len 0: none; the caller keeps it alive */
    sr_bytes hsts;            /* of Strict-Transport-Security, a valid field value; likewise */
    sr_bytes id_field; /* name of the field with the id of the request in responses; len 0: none; likewise */

    /* proxies in front */
    bool proxy_protocol;         /* each connection begins with a header of the PROXY protocol */
    sr_cidrs trusted;            /* peers that are believed; n 0: nobody */
    bool trusted_underscores;    /* request.underscores holds for trusted peers only */
    sr_forwarded_kind forwarded; /* the fields in which proxies name the client */
    bool x_forwarded_host;       /* believe X-Forwarded-Host, with SR_FORWARDED_X */
    bool x_forwarded_port;       /* likewise X-Forwarded-Port */
    uint32_t informational;      /* sr_informational */
} sr_config;

#endif
