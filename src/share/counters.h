#ifndef SR_COUNTERS_H
#define SR_COUNTERS_H
/*
 * counters: what a row of the scoreboard counts, for the life of the server: a worker goes on where the last one that had
 * the row has ended.
 *
 * One writer at a time, the worker with its helm, so a count is a load and a store without a locked instruction. Anybody
 * reads: each number is whole, but they are not all of one instant. All members are counters of 64 bits, as
 * sr_counters_sum takes them for an array.
 */
#include <stdatomic.h>
#include <stdint.h>

/* Why a connection was closed. One that moves to another worker is not closed */
typedef enum sr_closed {
    SR_CLOSED_CLIENT,  /* the client has ended it, or is gone */
    SR_CLOSED_IDLE,    /* keep-alive timeout */
    SR_CLOSED_HEAD,    /* header timeout */
    SR_CLOSED_BODY,    /* the body came too slowly */
    SR_CLOSED_WRITE,   /* the client did not read */
    SR_CLOSED_AFTER,   /* a response that was the last */
    SR_CLOSED_PROXY,   /* without a right header of the PROXY protocol, or of a peer that may not send one */
    SR_CLOSED_REFUSED, /* a refusal, but for a timeout above */
    SR_CLOSED_ERROR,   /* a response that was cut, no memory, a worker that was killed */
    SR_CLOSED_ROOM,    /* the oldest idle one, for a new one */
    SR_CLOSED_STOP,    /* idle while the server stops */
    SR_CLOSED_APPLICATION, /* the application has taken the socket (psgix.io) */
    SR_CLOSED_REASONS,
} sr_closed;

/* Time limits that end a request without closing its connection for a reason of their own; the others are in sr_closed */
typedef enum sr_limit {
    SR_LIMIT_QUEUE,   /* it was complete, and no worker was free */
    SR_LIMIT_REQUEST, /* the application had it, and no response had begun */
    SR_LIMIT_STREAM,  /* a response that had begun stood still */
    SR_LIMITS,
} sr_limit;

/* What the supervisor tells the operator, once for a period and with its count (trouble.c) */
typedef enum sr_trouble {
    SR_TROUBLE_QUEUE,          /* 503: --max-queue */
    SR_TROUBLE_QUEUE_TIMEOUT,  /* 503 */
    SR_TROUBLE_CONNECTIONS,    /* 503: --max-connections, and none was idle */
    SR_TROUBLE_MEMORY,         /* 503 */
    SR_TROUBLE_DESCRIPTORS,    /* a connection could not be accepted for want of one */
    SR_TROUBLE_TEMPFILE,       /* 500 or 507: a request body could not be written */
    SR_TROUBLE_SPOOL,          /* a response was cut: what the client had not read could not be kept */
    SR_TROUBLE_LOG_LOST,       /* lines of the access log */
    SR_TROUBLE_LOG_BACK,       /* a batch of lines was written after some were lost */
    SR_TROUBLE_BODY,           /* 413 */
    SR_TROUBLE_REQUEST_LINE,   /* 414 */
    SR_TROUBLE_HEAD,           /* 431 */
    SR_TROUBLE_HEADER_TIMEOUT, /* 408 */
    SR_TROUBLE_BODY_TIMEOUT,   /* 408 */
    SR_TROUBLE_MALFORMED,      /* 400, 501, 505 and what else is wrong with a request */
    SR_TROUBLES,
} sr_trouble;

/*
 * Times, log-linear: one bucket below 16 us, then 4 for each doubling up to 137 s, so a percentile is wrong by a
 * quarter at most, and one for what is longer. How many there are is the sum of the buckets.
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
    _Atomic uint64_t requests;     /* handed to the application */
    _Atomic uint64_t bytes;        /* sent, of responses that are over; without interim ones */
    _Atomic uint64_t responses[5]; /* by the first digit of the status; [0]: interim ones, [4]: 5 and above */
    _Atomic uint64_t aborted;      /* requests that ended before the last byte of their response */
    _Atomic uint64_t refused;  /* answered by the server itself; some of them may never have been complete */
    _Atomic uint64_t accepted; /* connections */
    _Atomic uint64_t closed[SR_CLOSED_REASONS];
    _Atomic uint64_t given; /* connections passed on to the edge that takes this one's place */
    _Atomic uint64_t taken; /* and taken over from the one before */
    _Atomic uint64_t
        lost; /* requests that ended with their worker, which was killed; by who has seen its end */
    _Atomic uint64_t log_lost;           /* lines of the access log that could not be written */
    _Atomic uint64_t limited[SR_LIMITS]; /* requests whose time was over */
    _Atomic uint64_t trouble[SR_TROUBLES];
    sr_histogram queue; /* of requests: from complete to given to the application */
    sr_histogram
        latency; /* of complete requests that were answered: from complete to the last byte with the kernel */
} sr_counters;

/* For the writer. Relaxed, and not atomic as a whole */
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

/* The first ns of a bucket, which is the end of the one before. i < SR_HISTOGRAM_BUCKETS */
uint64_t sr_histogram_from(unsigned i);

uint64_t sr_histogram_count(const sr_histogram *h);

/* ns that a part (0 to 1) of all times are not above, linear within the bucket; in the last bucket its start. 0: none */
double sr_histogram_quantile(const sr_histogram *h, double part);

/* Adds a row's to one of the caller's own, zeroed at first */
void sr_counters_sum(sr_counters *sum, const sr_counters *row);

const char *sr_closed_name(sr_closed why);    /* static: "client", "keepalive-timeout" */
const char *sr_trouble_name(sr_trouble what); /* static: "queue-timeout" */
const char *sr_limit_name(sr_limit which);    /* static: "queue" */

#endif
