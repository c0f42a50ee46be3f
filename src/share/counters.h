#ifndef SR_COUNTERS_H
#define SR_COUNTERS_H
/*
 * counters: what a row of the scoreboard counts, from the start of the server on: the next worker or edge
 * that has the row continues where the one before has ended.
 *
 * Writer: one at a time, the process that has the row, so adding is a load and a store without a locked
 * instruction; `lost` and `closed` are also written by the process that has seen the end of the one before.
 * Reader: any process. Each number is whole, but they are not all of the same instant. All members are
 * counters of 64 bits, because sr_counters_sum treats them as an array.
 */
#include <stdatomic.h>
#include <stdint.h>

/* Why a connection was closed. A connection that passes to another edge is not closed. */
typedef enum sr_closed {
    SR_CLOSED_CLIENT,      /* the client has closed it, or is gone */
    SR_CLOSED_IDLE,        /* --keepalive-timeout */
    SR_CLOSED_HEAD,        /* --header-timeout */
    SR_CLOSED_BODY,        /* --body-rate */
    SR_CLOSED_WRITE,       /* --write-timeout */
    SR_CLOSED_AFTER,       /* after its last response */
    SR_CLOSED_PROXY,       /* no valid header of the PROXY protocol, or a peer that is not trusted */
    SR_CLOSED_REFUSED,     /* a request was refused, but for a timeout above */
    SR_CLOSED_ERROR,       /* a response was cut, there was no memory, or the edge was killed */
    SR_CLOSED_ROOM,        /* it was the oldest idle one, and a new one came */
    SR_CLOSED_STOP,        /* it was idle while the server stops */
    SR_CLOSED_APPLICATION, /* the application has taken the socket (psgix.io) */
    SR_CLOSED_SPOOL,       /* it was the slowest, and there was no room for temporary files */
    SR_CLOSED_HANDSHAKE,   /* a TLS handshake has failed, or --tls-handshake-timeout */
    SR_CLOSED_HOLD,        /* --hold-buffer */
    SR_CLOSED_REASONS,
} sr_closed;

/* Why the server has answered a request itself, with an error. The names are documented: docs/PROTOCOL.md */
typedef enum sr_refusal {
    SR_REFUSED_NOT, /* it has not */
    SR_REFUSED_MALFORMED,
    SR_REFUSED_INCOMPLETE,      /* the client has shut down its side within it */
    SR_REFUSED_NOT_TLS,         /* plain HTTP where TLS is spoken */
    SR_REFUSED_HEADER_TIMEOUT,  /* --header-timeout */
    SR_REFUSED_BODY_TIMEOUT,    /* --body-rate */
    SR_REFUSED_BODY,            /* --max-body */
    SR_REFUSED_REQUEST_LINE,    /* --max-request-line */
    SR_REFUSED_HEAD,            /* --max-header-bytes, --max-header-fields, and limits of trailers */
    SR_REFUSED_EXPECT,          /* an expectation that is not known */
    SR_REFUSED_UPGRADE,         /* a version of WebSocket that is not known */
    SR_REFUSED_NOT_IMPLEMENTED, /* a method or a transfer coding */
    SR_REFUSED_VERSION,         /* of HTTP */
    SR_REFUSED_TMPDIR,          /* its body could not be written to a file */
    SR_REFUSED_TEMPORARY,       /* --max-temp-file-size, and it was the slowest */
    SR_REFUSED_CONNECTIONS,     /* --max-connections, and no connection was idle */
    SR_REFUSED_QUEUE,           /* --max-queue */
    SR_REFUSED_QUEUE_TIMEOUT,   /* --queue-timeout */
    SR_REFUSED_HALF_CLOSED,     /* its client has shut down its side while it waited: --half-closed */
    SR_REFUSED_REQUEST_TIMEOUT, /* --request-timeout: the response had not begun */
    SR_REFUSED_WORKER,          /* its worker has ended */
    SR_REFUSED_MEMORY,
    SR_REFUSED_DESCRIPTORS,
    SR_REFUSED_FILE,         /* a file of --static could not be opened at the moment */
    SR_REFUSED_STOP,         /* the server has ended before its response had begun */
    SR_REFUSED_LANE,         /* the queue of its lane was full: --lane */
    SR_REFUSED_LANE_TIMEOUT, /* it has waited for its lane for too long */
    SR_REFUSED_HOLD,         /* --hold-per-client */
    SR_REFUSALS,
} sr_refusal;

/* Why a TLS handshake has failed. */
typedef enum sr_failure {
    SR_FAILURE_CLOSED,      /* the client has closed the connection, or is gone */
    SR_FAILURE_TIMEOUT,     /* --tls-handshake-timeout */
    SR_FAILURE_VERSION,     /* no TLS version in common */
    SR_FAILURE_CIPHER,      /* no cipher, group or signature algorithm in common */
    SR_FAILURE_CERTIFICATE, /* the client's certificate is missing or not accepted */
    SR_FAILURE_ALERT,       /* the client has refused with an alert: our certificate, most often */
    SR_FAILURE_NOT_TLS,     /* plain HTTP, or rubbish */
    SR_FAILURE_OTHER,
    SR_FAILURES,
} sr_failure;

/*
 * What a client of HTTP/2 does too often, so that its connection ends; of STREAMS only the request is refused
 * (src/h2/flood.h).
 */
typedef enum sr_flood {
    SR_FLOOD_RESETS,       /* it cancels requests */
    SR_FLOOD_ERRORS,       /* it makes errors for which the server resets streams */
    SR_FLOOD_STREAMS,      /* it sends requests while too many that it has cancelled still run */
    SR_FLOOD_HEAD,         /* a head is far too large */
    SR_FLOOD_CONTINUATION, /* a head comes in too many frames */
    SR_FLOOD_SETTINGS,
    SR_FLOOD_PING,
    SR_FLOOD_PRIORITY,
    SR_FLOOD_WINDOW, /* WINDOW_UPDATE, beside what it gets */
    SR_FLOOD_EMPTY,  /* DATA without data */
    SR_FLOOD_OTHER,  /* frames without an effect */
    SR_FLOOD_UNREAD, /* it does not read the answers to PING and SETTINGS */
    SR_FLOODS,
} sr_flood;

/* What an edge holds for an application (src/live). */
typedef enum sr_held_kind { SR_HELD_STREAM, SR_HELD_RESPONSE, SR_HELD_WEBSOCKET, SR_HELD_KINDS } sr_held_kind;

/* Time limits that are not a reason in sr_closed, or not only. */
typedef enum sr_limit {
    SR_LIMIT_QUEUE,   /* --queue-timeout: no worker was free */
    SR_LIMIT_REQUEST, /* --request-timeout: the response had not begun */
    SR_LIMIT_STREAM,  /* --stream-timeout: a response that had begun made no progress */
    SR_LIMIT_WRITE,   /* --write-timeout of a stream, whose connection goes on */
    SR_LIMITS,
} sr_limit;

/* What the supervisor reports to the operator, once for a period and with a count (src/conn/trouble.h). */
typedef enum sr_trouble {
    SR_TROUBLE_QUEUE,         /* 503: --max-queue */
    SR_TROUBLE_QUEUE_TIMEOUT, /* 503 */
    SR_TROUBLE_LANE,          /* 503: the queue of a lane */
    SR_TROUBLE_LANE_TIMEOUT,  /* 503 */
    SR_TROUBLE_CONNECTIONS,   /* 503: --max-connections, and no connection was idle */
    SR_TROUBLE_HOLD,          /* 503: --hold-per-client */
    SR_TROUBLE_MEMORY,        /* 503 */
    SR_TROUBLE_DESCRIPTORS,   /* a connection could not be accepted for lack of a descriptor */
    SR_TROUBLE_TEMPFILE,      /* 500 or 507: a request body could not be written to a file */
    SR_TROUBLE_SPOOL,         /* a response was cut: what the client had not read could not be stored */
    SR_TROUBLE_HELD, /* a response had to wait for its client, as --max-temp-file-size or the disk was full */
    SR_TROUBLE_SLOWEST,        /* then the slowest client was cut off, or an upload refused with 507 */
    SR_TROUBLE_WORKER,         /* an edge could not take a new worker, for lack of memory or descriptors */
    SR_TROUBLE_RESET,          /* a connection was closed without an answer, for lack of memory */
    SR_TROUBLE_LOG_LOST,       /* lines of the access log could not be written */
    SR_TROUBLE_LOG_BACK,       /* lines are written again after some were lost */
    SR_TROUBLE_BODY,           /* 413 */
    SR_TROUBLE_REQUEST_LINE,   /* 414 */
    SR_TROUBLE_HEAD,           /* 431 */
    SR_TROUBLE_HEADER_TIMEOUT, /* 408 */
    SR_TROUBLE_BODY_TIMEOUT,   /* 408 */
    SR_TROUBLE_MALFORMED,      /* 400, 501, 505 and other faults of a request */
    SR_TROUBLES,
} sr_trouble;

/*
 * Times in log-linear buckets: one below 16 us, four for each doubling up to 137 s, so that a percentile is
 * wrong by a quarter at most, and one above. The number of times is the sum of the buckets.
 */
enum {
    SR_HISTOGRAM_FIRST = 14, /* the first bucket ends at 2^14 ns */
    SR_HISTOGRAM_OCTAVES = 23,
    SR_HISTOGRAM_BUCKETS = 1 + 4 * SR_HISTOGRAM_OCTAVES + 1,
};

typedef struct sr_histogram {
    _Atomic uint64_t sum; /* ns */
    _Atomic uint64_t buckets[SR_HISTOGRAM_BUCKETS];
} sr_histogram;

typedef struct sr_counters {
    _Atomic uint64_t requests;             /* for which the application was called */
    _Atomic uint64_t bytes;                /* of responses that are over, without interim responses */
    _Atomic uint64_t responses[5];         /* by the first digit of the status, from 1; [4] is 5 and above */
    _Atomic uint64_t aborted;              /* requests whose client did not get all of the response */
    _Atomic uint64_t refused[SR_REFUSALS]; /* requests that the server has answered itself, complete or not */
    _Atomic uint64_t files;                /* requests that were answered from the folders of --static */
    _Atomic uint64_t files_bytes;          /* of these responses, included in `bytes` */
    _Atomic uint64_t files_unchanged;      /* of these, 304 */
    _Atomic uint64_t files_missing;        /* of these, 404 */
    _Atomic uint64_t accepted;             /* connections */
    _Atomic uint64_t paused;  /* times that none was accepted for 100 ms, for lack of descriptors or memory */
    _Atomic uint64_t http2;   /* connections that have spoken HTTP/2 */
    _Atomic uint64_t goaways; /* of these, that were told to end: by GOAWAY */
    _Atomic uint64_t streams; /* of these, requests that have begun */
    _Atomic uint64_t streams_cancelled;   /* of these, reset by the client */
    _Atomic uint64_t streams_reset;       /* reset by the server, with an error */
    _Atomic uint64_t handshakes;          /* of TLS, that have succeeded */
    _Atomic uint64_t failed[SR_FAILURES]; /* handshakes of TLS */
    _Atomic uint64_t closed[SR_CLOSED_REASONS];
    _Atomic uint64_t floods[SR_FLOODS];
    _Atomic uint64_t given; /* connections passed to the edge that replaced this one */
    _Atomic uint64_t taken; /* connections taken over from the edge before */
    _Atomic uint64_t
        lost; /* requests that ended with their worker; counted by the process that has seen its end */
    _Atomic uint64_t published;   /* items to channels */
    _Atomic uint64_t unpublished; /* items that were dropped, for lack of memory */
    _Atomic uint64_t delivered;   /* items, each to one connection */
    _Atomic uint64_t
        hold_slow; /* held connections that were closed, as their client was too far behind: --hold-buffer */
    _Atomic uint64_t hold_gaps;          /* held responses that were ended, as an item was lost: prev-id */
    _Atomic uint64_t log_lost;           /* lines of the access log that could not be written */
    _Atomic uint64_t slow;               /* requests that ran for longer than --slow-log */
    _Atomic uint64_t limited[SR_LIMITS]; /* requests that have exceeded a time limit */
    _Atomic uint64_t trouble[SR_TROUBLES];
    sr_histogram queue;   /* of requests: from complete to the call of the application */
    sr_histogram latency; /* of answered requests but `files`: from complete to the last byte in the kernel */
} sr_counters;

/* For the writer only: the addition as a whole is not atomic. */
static inline void sr_counters_add(_Atomic uint64_t *n, uint64_t by)
{
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + by, memory_order_relaxed);
}

static inline unsigned sr_histogram_index(uint64_t ns)
{
    if (ns >> SR_HISTOGRAM_FIRST == 0)
        return 0;
    unsigned octave = 63 ^ (unsigned)__builtin_clzll(ns);
    unsigned i = 4 * (octave - SR_HISTOGRAM_FIRST) + (unsigned)(ns >> (octave - 2)) - 3; /* 4 to 7, less 3 */
    return i < SR_HISTOGRAM_BUCKETS ? i : SR_HISTOGRAM_BUCKETS - 1;
}

static inline void sr_histogram_add(sr_histogram *h, uint64_t ns)
{
    sr_counters_add(&h->buckets[sr_histogram_index(ns)], 1);
    sr_counters_add(&h->sum, ns);
}

/* The first ns of bucket i, which is the end of the one before. i < SR_HISTOGRAM_BUCKETS */
uint64_t sr_histogram_from(unsigned i);

uint64_t sr_histogram_count(const sr_histogram *h);

/*
 * A quantile in ns, `part` from 0 to 1, linear within a bucket; in the last bucket its start. 0: nothing was
 * counted
 */
double sr_histogram_quantile(const sr_histogram *h, double part);

/* Adds the counters of a row to *sum, which the caller has zeroed. */
void sr_counters_sum(sr_counters *sum, const sr_counters *row);

const char *sr_closed_name(sr_closed why);    /* static: "client", "keepalive-timeout" */
const char *sr_refusal_name(sr_refusal why);  /* static: "queue-timeout"; NULL of SR_REFUSED_NOT */
const char *sr_failure_name(sr_failure why);  /* static: "version", "not_tls" */
const char *sr_flood_name(sr_flood what);     /* static: "window-update" */
const char *sr_trouble_name(sr_trouble what); /* static: "queue-timeout" */
const char *sr_limit_name(sr_limit which);    /* static: "queue" */

#endif
