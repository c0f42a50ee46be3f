#ifndef SR_QUEUE_H
#define SR_QUEUE_H
/*
 * queue: complete requests of one edge, on their way to whichever worker is free: first come, first served.
 *
 * Two pieces of shared memory that the edge makes:
 *
 *   requests   read-only for workers (sealed, F_SEAL_FUTURE_WRITE): how many there ever were (`put`), a ring that says in
 *              which slot each number lies, and the slots
 *   replies    writable: a claim for each slot, and what workers and edge say to wake each other
 *
 * Beside them each worker has a ring of its own for what it replies (ring.h).
 *
 * A request has a number, counted from 1, and a slot. The claim of its slot is one word, the number and the owner: nobody, the
 * edge, or a row. One compare-and-swap from nobody is both the taking and the record of who has taken it, so a worker
 * may be killed at any instruction: either nobody has the request, or that row has it, and the edge can tell. The edge takes
 * a request back in the same way: when its client has gone, or its time in the queue is over.
 *
 * `head` is where workers begin to look. It is a hint: behind the first free request it costs a step, before it the
 * edge sets it right (sr_queue_mend, each millisecond while something waits).
 *
 * Claims can be spoiled: any worker can write there. What one says is believed of a request as long as its worker has not
 * spoken (src/edge/mend.c says who sets right what): a claim of somebody who has not begun is taken back after a while, and
 * given to the next. A worker that was only slow sees that before it begins, since it says that it begins, and then looks at
 * the claim again; the edge takes the claim, and then looks whether it has begun. One of the two sees the other.
 *
 * A slot is the edge's again when the worker says that it is done with the request, or is dead.
 *
 * Limits: a number has 48 bits, at a million a second enough for 9 years; the edge is renewed before.
 */
#include "ring.h"

#include "../http/request.h"
#include "../net/peer.h"

enum {
    SR_QUEUE_LAYOUT =
        3, /* counted up when anything here, in ring.h or sleepers.h changes its place or meaning */
    SR_SLOT_BYTES = 8192,
    SR_QUEUE_SLOTS_MAX = 65536,
    SR_OWNER_EDGE = 0xffff,
    SR_OWNER_NOBODY = 0,
};

typedef enum sr_slot_scheme { SR_SCHEME_UNSAID, SR_SCHEME_HTTP, SR_SCHEME_HTTPS } sr_slot_scheme;

/* One request, as the edge puts it. Workers read it, and may read nothing else of the edge. */
typedef struct sr_slot {
    uint64_t number;
    _Atomic int64_t
        ready_at; /* monotonic ns: when it was complete. Workers compare it before the request is theirs */
    int64_t ready_wall; /* ns since 1970 */
    uint64_t body_length;
    sr_peer client;             /* the peer, or whom trusted proxies name */
    uint8_t listener;           /* index */
    uint8_t scheme;             /* sr_slot_scheme, as a trusted proxy has said */
    uint16_t server_port;       /* likewise; 0: unsaid */
    uint16_t files;             /* descriptors that the row's socket brings when asked for; see SR_FILE_ */
    uint32_t parse;             /* bytes of the sr_request at the start of data: as many fields as it has */
    uint32_t head;              /* then these bytes, into which its spans point */
    uint32_t body;              /* then these, when the body is here */
    uint32_t host_at, host_len; /* in the head, as a trusted proxy has said; host_len 0: unsaid */
    bool forwarded;             /* a trusted proxy has said something: scheme, server_port, host count */
    _Atomic uint32_t gone;      /* sr_gone; else 0: what still comes is thrown away */
    _Atomic uint32_t backlog;   /* bytes of the response that the client has not taken yet: a writer waits */
    _Alignas(16) char data[];
} sr_slot;

typedef enum sr_gone {
    SR_GONE_CLIENT = 1,
    SR_GONE_LATE, /* it took too long: the worker will be ended, and must take no other */
} sr_gone;

enum {
    SR_FILE_REQUEST = 1, /* parse, head and body are there instead of in data */
    SR_FILE_BODY = 2
};

enum { SR_SLOT_DATA = SR_SLOT_BYTES - sizeof(sr_slot) };

/* --- shared --- */

typedef struct sr_requests {
    uint32_t layout, slots, mask, rows; /* mask: of the ring, one less than a power of two */
    uint32_t slots_at;                  /* bytes from the start of the memory */
    _Alignas(64) _Atomic uint64_t put;
    _Alignas(64) _Atomic uint32_t ring[];
} sr_requests;

typedef struct sr_claim {
    _Alignas(64) _Atomic uint64_t word; /* number << 16 | owner: nobody, the edge, or the row + 1 */
} sr_claim;

typedef struct sr_replies {
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint32_t asleep; /* the edge waits for events: who has something for it rings */
    _Alignas(64) _Atomic uint64_t replied[8192 / 64]; /* rows whose ring is worth a look */
    sr_claim claims[];
} sr_replies;

/* --- the edge --- */

typedef struct sr_queue {
    int requests_fd, replies_fd;
    sr_requests *requests;
    sr_replies *replies;
    size_t requests_bytes, replies_bytes;
    uint32_t *free; /* slots, the last freed first: it is in the cache */
    uint32_t n_free;
    uint64_t put;   /* its own counts: what the memory says is for others */
    uint64_t first; /* below it, no request waits */
    uint64_t
        n_left_out; /* of those from first on, known not to wait: taken back, or taken before an older one came back */
    bool *left_out; /* by number modulo the ring: one of those */
} sr_queue;

int sr_queue_new(sr_queue *q, uint32_t slots, uint32_t rows); /* 0 or errno */
void sr_queue_free(sr_queue *q);

/* A slot to be filled, all but its number; NULL: none is free, or too many numbers stand behind the oldest that waits. */
sr_slot *sr_queue_slot(sr_queue *q, uint32_t *index);
/* It is filled: from now on a worker may have it. Returns its number. */
uint64_t sr_queue_put(sr_queue *q, uint32_t index);
/* Takes it back. False: a worker has it. */
bool sr_queue_drop(sr_queue *q, uint32_t index, uint64_t number);
/* The row that has it; -1: nobody, or the edge. */
int32_t sr_queue_owner(const sr_queue *q, uint32_t index, uint64_t number);
/* Done with: nobody reads it any more. */
void sr_queue_release(sr_queue *q, uint32_t index);
/* The worker that had it has died before it began: it is to be had again, by whoever looks first. False: too late. */
bool sr_queue_again(sr_queue *q, uint32_t index, uint64_t number);
/*
 * Nobody has it who would have begun: it becomes the edge's, which then looks whether a worker has begun after all, and
 * either grants it to that one and looks whether it still says so, or else begins anew; or lets it be had again. False: it waits, or the claim changes at this moment.
 */
bool sr_queue_retake(sr_queue *q, uint32_t index, uint64_t number);
void sr_queue_grant(sr_queue *q, uint32_t index, uint64_t number, uint32_t row);
bool sr_queue_waits(const sr_queue *q, uint32_t index, uint64_t number); /* nobody has it */
uint64_t sr_queue_waiting(sr_queue *q);                                  /* that nobody has. Moves first */
int64_t
sr_queue_since(sr_queue *q); /* monotonic ns at which the first of those was complete; 0: none waits */
/* What workers begin with is set right, if it was wrong. */
void sr_queue_mend(sr_queue *q);

sr_slot *sr_queue_at(const sr_queue *q, uint32_t index);

/* --- a worker --- */

typedef struct sr_consumer { /* one edge, as a worker sees it */
    const sr_requests *requests;
    sr_replies *replies;
    sr_ring *ring;
    size_t requests_bytes, replies_bytes;
    uint64_t number; /* of the request that was last taken */
    uint32_t row;
} sr_consumer;

/* Maps both; the descriptors stay the caller's. 0 or errno; EPROTO: another layout. */
int sr_consumer_open(sr_consumer *c, int requests_fd, int replies_fd, int ring_fd, uint32_t row);
void sr_consumer_close(sr_consumer *c);
/*
 * The oldest that nobody has becomes this row's. NULL: there is none. What the slot says must not be used before
 * sr_consumer_begin: it may be another's again.
 */
const sr_slot *sr_consumer_take(sr_consumer *c, uint32_t *index);
/*
 * Before anything is done with it: says in the ring that it begins. DOUBTED: the edge is about to decide whether it goes to
 * another worker; ask again. LOST: it does.
 */
typedef enum sr_claim_result { SR_CLAIM_MINE, SR_CLAIM_DOUBTED, SR_CLAIM_LOST } sr_claim_result;
sr_claim_result sr_consumer_begin(sr_consumer *c, uint32_t index, uint64_t number);
uint64_t sr_consumer_waiting(const sr_consumer *c); /* about */
/* ready_at of the first that nobody has; INT64_MAX: there is none. It may be somebody's in the next moment */
int64_t sr_consumer_oldest(const sr_consumer *c);

#endif
