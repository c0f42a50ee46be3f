#ifndef SR_QUEUE_H
#define SR_QUEUE_H
/*
 * queue: the complete requests of one edge, from which any free worker takes the oldest.
 *
 * The edge makes two pieces of shared memory:
 *
 *   requests   read-only for workers (F_SEAL_FUTURE_WRITE): `put`, the number of the next request; a ring
 *              that tells in which slot each number lies; and the slots
 *   replies    writable: a claim for each slot, and words by which workers and edge wake each other
 *
 * Besides, each worker has a ring of its own for what it replies (ring.h).
 *
 * A request has a number, counted from 1, and a slot. The claim of the slot is one word that holds the number
 * and the owner: nobody, the edge, or a row. A worker takes a request by one compare-and-swap from nobody to
 * its row, which also records who has it. So a worker may be killed at any instruction: either nobody has the
 * request, or that row has it, and the edge can tell. The edge takes a request back in the same way, when its
 * client is gone or its time in the queue is over.
 *
 * `head` is where workers start to look. It is a hint. If it is before the first request that waits, that
 * costs a step; if it is after that one, the edge corrects it (sr_queue_mend, each millisecond while
 * something waits).
 *
 * Trust: any worker can write claims. A claim is believed only until a worker has spoken about the request
 * (src/edge/mend.c repairs the rest): if its owner does not begin, the edge takes the claim back after a
 * while and gives the request to the next worker. A worker that was only slow notices that: it writes that it
 * begins and then reads the claim again, while the edge changes the claim and then reads who has begun. One
 * of the two sees the other.
 *
 * A slot is free again when the worker says that it is done with the request, or is dead.
 *
 * The edge may change its mind about a request that a worker has begun with: its client is gone, or it takes
 * too long. It says so in the slot, in one word with the number of the request, so that a worker that looks
 * too late does not take the word about the next request in that slot for its own. The word has two bits, and
 * they mean different things (sr_gone). CLIENT is final: the edge has given up the exchange, and throws away
 * all that still comes. A worker may then stop sending, and any worker that has left out a byte ends its
 * reply with CUT, never with END. LATE is a question: the edge is about to have the worker killed, reads its
 * ring once more, and takes LATE back if that shows that the worker goes on. It says nothing about the reply,
 * all of which still counts; a worker only looks at it after END, where it decides whether to take another
 * request. Either the edge finds that END, or the worker sees LATE.
 *
 * Limits: a number has 48 bits, which lasts 9 years at a million requests a second; an edge is replaced
 * before.
 */
#include "ring.h"

#include "../http/forwarded.h"
#include "../net/peer.h"

enum {
    SR_SLOT_BYTES = 8192,
    SR_QUEUE_SLOTS_MAX = 65536,
    SR_BACKLOG_MAX = 64 * 1024, /* bytes that a streamed response may be ahead of its client */
    SR_PENDING_MAX = 1 << 30,   /* bytes that any response may be: above this its worker waits, with it */
    SR_OWNER_EDGE = 0xffff,
    SR_OWNER_NOBODY = 0,
};

/*
 * One request, as the edge has written it. A worker reads its own slot, and must read nothing else of the
 * edge.
 */
typedef struct sr_slot {
    /* read by workers before they have the request, or when the edge has given it to another one already */
    _Atomic uint64_t number;
    _Atomic int64_t ready_at; /* monotonic ns at which it was complete */
    /* the time that counts when workers compare it with those of other edges: the same, or later */
    _Atomic int64_t placed_at;
    _Atomic uint32_t files; /* SR_FILE_ bits: descriptors that the worker has to ask for */

    /* read by the worker that has begun with it */
    int64_t ready_wall; /* the same in ns since 1970 */
    int64_t before_ns;  /* that it had waited in a proxy before that, as far as a trusted one says */
    uint64_t body_length;
    sr_peer client;       /* the peer, or whom trusted proxies name */
    uint8_t listener;     /* index */
    uint8_t scheme;       /* sr_scheme, as trusted proxies say; UNSAID without any */
    uint16_t server_port; /* likewise; 0: they say none */
    uint32_t parse;       /* bytes of the sr_request at the start of data, up to its last field */
    uint32_t head;        /* bytes of the head after that, into which its spans point */
    uint32_t body;        /* bytes of the body after that, if it is in memory */
    uint32_t facts; /* bytes after that, about the encrypted connection (facts.h); 0: it is not encrypted */
    uint32_t host_at, host_len; /* host in the head, as trusted proxies say; host_len 0: they say none */
    bool trusted;               /* it came from a trusted peer */
    bool in_lane;               /* the edge wants to know when the worker is done with it: sr_ring.done */
    bool forwarded;        /* trusted proxies have said something: scheme, server_port and host are valid */
    _Atomic uint64_t gone; /* number << 2 | bits of sr_gone, written by sr_queue_gone */
    _Atomic uint32_t backlog; /* bytes of the response that the client has not taken; its writer waits */
    _Alignas(16) char data[];
} sr_slot;

typedef enum sr_gone {
    SR_GONE_CLIENT = 1, /* the client is gone, or was answered or cut off by the edge. Never taken back */
    SR_GONE_LATE = 2, /* the worker is about to be killed: it must not take another request after this one */
} sr_gone;

enum { SR_GONE_BITS = 2 };

enum {
    SR_FILE_REQUEST = 1, /* parse, head and body are in a file instead of in data */
    SR_FILE_BODY = 2
};

enum { SR_SLOT_DATA = SR_SLOT_BYTES - sizeof(sr_slot) };

/* --- shared --- */

typedef struct sr_requests {
    uint32_t layout, slots, mask, rows; /* mask: size of the ring less one; a power of two less one */
    uint32_t slots_at;                  /* bytes from the start of the memory */
    uint64_t nonce;                     /* of the edge, for ids of requests (http/traced.h) */
    _Alignas(64) _Atomic uint64_t put;
    _Alignas(64) _Atomic uint32_t ring[];
} sr_requests;

typedef struct sr_claim {
    _Alignas(64) _Atomic uint64_t word; /* number << 16 | owner: nobody, the edge, or the row + 1 */
} sr_claim;

typedef struct sr_replies {
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(
        64) _Atomic uint32_t asleep; /* the edge waits for events: a worker that has replied rings the bell */
    _Alignas(64) _Atomic uint64_t replied[8192 / 64]; /* a bit for each row that has written to its ring */
    sr_claim claims[];
} sr_replies;

/*
 * The first part is counted up when something here, in ring.h, reply.h, item.h, door.h or sleepers.h moves or
 * changes its meaning; the second changes by itself with most sizes.
 */
enum {
    SR_QUEUE_SIZES =
        (((sizeof(sr_slot) * 31 + SR_SLOT_BYTES) * 31 + sizeof(sr_requests) + sizeof(sr_claim)) * 31 +
         sizeof(sr_replies) * 31 + sizeof(sr_ring)) %
        0xffffff,
    SR_QUEUE_LAYOUT = 14 << 24 | SR_QUEUE_SIZES,
};

/* --- the edge --- */

typedef struct sr_queue {
    int requests_fd, replies_fd;
    sr_requests *requests;
    sr_replies *replies;
    size_t requests_bytes, replies_bytes;
    uint32_t *free; /* free slots; the one that was freed last is used first, as it is in the cache */
    uint32_t n_free;
    uint64_t put;   /* number of the next request; the edge does not read its own shared memory for that */
    uint64_t first; /* no request with a lower number waits */
    uint64_t n_left_out; /* numbers from first on that do not wait: taken back, or taken out of order */
    bool *left_out;      /* whether a number is one of those, by the number modulo the ring */
} sr_queue;

int sr_queue_new(sr_queue *q, uint32_t slots, uint32_t rows); /* 0 or errno */
void sr_queue_free(sr_queue *q);

/*
 * A free slot, in which the caller sets everything but the number. NULL: none is free, or the ring is full.
 */
sr_slot *sr_queue_slot(sr_queue *q, uint32_t *index);

/* Whether the ring has a place for one more number. */
bool sr_queue_room(sr_queue *q);

/* The slot is filled: workers can take it from now on. Returns the number of the request. */
uint64_t sr_queue_put(sr_queue *q, uint32_t index);

/* Takes a request back that waits. False: a worker has it. */
bool sr_queue_drop(sr_queue *q, uint32_t index, uint64_t number);

/* The row that has the request, as its claim says; -1: nobody, or the edge. */
int32_t sr_queue_owner(const sr_queue *q, uint32_t index, uint64_t number);

/* Makes the slot free. Nobody reads it any more. */
void sr_queue_release(sr_queue *q, uint32_t index);

/*
 * Lets workers take a request again whose worker has died before it began. False: the ring has no place for
 * it any more.
 */
bool sr_queue_again(sr_queue *q, uint32_t index, uint64_t number);

/*
 * Takes the claim of a request whose owner does not begin. False: the request waits, or its claim is changing
 * at this moment. The caller then looks whether a worker has begun after all. If so, it grants the request to
 * that worker and looks whether the worker still says so; otherwise it lets others take it (sr_queue_again).
 */
bool sr_queue_retake(sr_queue *q, uint32_t index, uint64_t number);
void sr_queue_grant(sr_queue *q, uint32_t index, uint64_t number, uint32_t row);

bool sr_queue_waits(const sr_queue *q, uint32_t index, uint64_t number); /* nobody has it */

/*
 * A request that waits does not count as waiting: a worker had it, and its claim says now that nobody has it.
 */
bool sr_queue_hidden(const sr_queue *q, uint64_t number);

uint64_t sr_queue_waiting(sr_queue *q); /* how many wait. Moves `first` */
int64_t sr_queue_since(sr_queue *q); /* monotonic ns at which the first of them was complete; 0: none waits */

/* Corrects `head`, if a worker has spoiled it. */
void sr_queue_mend(sr_queue *q);

sr_slot *sr_queue_at(const sr_queue *q, uint32_t index);

/* Tells the worker of the request what the edge thinks of it: bits of sr_gone, in place of those before. */
void sr_queue_gone(sr_queue *q, uint32_t index, uint64_t number, uint32_t bits);

/* --- a worker --- */

typedef struct sr_consumer { /* the queue of one edge, as a worker sees it */
    const sr_requests *requests;
    sr_replies *replies;
    sr_ring *ring;
    size_t requests_bytes, replies_bytes;
    uint64_t number; /* of the request that it has taken last */
    uint32_t row;
} sr_consumer;

/* Maps the memory. The descriptors stay the caller's. Returns 0 or errno; EPROTO: of another layout. */
int sr_consumer_open(sr_consumer *c, int requests_fd, int replies_fd, int ring_fd, uint32_t row);
void sr_consumer_close(sr_consumer *c);

/*
 * Takes the oldest request that nobody has. NULL: there is none. The caller must not use what the slot says
 * before sr_consumer_begin, as the request may be another worker's again.
 */
const sr_slot *sr_consumer_take(sr_consumer *c, uint32_t *index);

/*
 * Announces in the ring that this worker begins with the request. DOUBTED: the edge is about to decide
 * whether to give the request to another worker; call again. LOST: it has done so.
 */
typedef enum sr_claim_result { SR_CLAIM_MINE, SR_CLAIM_DOUBTED, SR_CLAIM_LOST } sr_claim_result;
sr_claim_result sr_consumer_begin(sr_consumer *c, uint32_t index, uint64_t number);

/*
 * The edge takes too long to decide: tells it that this worker has not begun. False: it has just decided for
 * this worker, which must begin.
 */
bool sr_consumer_forgo(sr_consumer *c, uint32_t index, uint64_t number);

/*
 * What trusted proxies have said of the request, for one whose `forwarded` is set. `base`: where its head is.
 */
static inline sr_forwarded sr_slot_forwarded(const sr_slot *s, const char *base)
{
    sr_bytes host = s->host_len ? sr_bytes_of(base + s->host_at, s->host_len) : sr_bytes_of(NULL, 0);
    return (sr_forwarded){.server_port = s->server_port, .scheme = (sr_scheme)s->scheme, .host = host};
}

/* What the edge thinks of a request that this worker has taken: bits of sr_gone. */
static inline uint32_t sr_slot_gone(const sr_slot *s, uint64_t number)
{
    uint64_t word = atomic_load(&s->gone);
    return word >> SR_GONE_BITS == number ? (uint32_t)word & (SR_GONE_CLIENT | SR_GONE_LATE) : 0;
}

/* How many requests wait, approximately. */
uint64_t sr_consumer_waiting(const sr_consumer *c);

/*
 * placed_at of the first request that nobody has; INT64_MAX: there is none. Another worker may take it at any
 * moment.
 */
int64_t sr_consumer_oldest(const sr_consumer *c);

#endif
