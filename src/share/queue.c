#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "queue.h"

#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, OWNER_BITS = 16, NUMBERS_PER_SLOT = 8 };

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t replies_bytes(uint32_t slots)
{
    return pages(sizeof(sr_replies) + slots * sizeof(sr_claim));
}

static uint64_t claim_of(uint64_t number, uint32_t owner)
{
    return number << OWNER_BITS | owner;
}

/* --- the edge --- */

int sr_queue_new(sr_queue *q, uint32_t slots, uint32_t rows)
{
    uint32_t ring = 64;
    *q = (sr_queue){.requests_fd = -1, .replies_fd = -1, .put = 1, .first = 1};
    while (ring < slots * NUMBERS_PER_SLOT)
        ring *= 2;
    if (!slots || slots > SR_QUEUE_SLOTS_MAX)
        return EINVAL;
    size_t slots_at = pages(sizeof(sr_requests) + ring * sizeof(uint32_t));
    q->requests_bytes = slots_at + (size_t)slots * SR_SLOT_BYTES;
    q->replies_bytes = replies_bytes(slots);
    q->free = malloc(slots * sizeof *q->free);
    q->left_out = calloc(ring, 1);
    q->requests = sr_memory_new("sirius-requests", q->requests_bytes, &q->requests_fd);
    q->replies = sr_memory_new("sirius-replies", q->replies_bytes, &q->replies_fd);
    if (!q->requests || !q->replies || !q->free || !q->left_out) {
        int err = errno ? errno : ENOMEM;
        sr_queue_free(q);
        return err;
    }
    sr_memory_seal(q->requests_fd, true);
    sr_memory_seal(q->replies_fd, false);
    q->requests->layout = SR_QUEUE_LAYOUT;
    q->requests->slots = slots;
    q->requests->mask = ring - 1;
    q->requests->rows = rows;
    q->requests->slots_at = (uint32_t)slots_at;
    atomic_store(&q->requests->put, q->put);
    atomic_store(&q->replies->head, q->put);
    while (q->n_free < slots) {
        q->free[q->n_free] = slots - 1 - q->n_free;
        q->n_free++;
    }
    return 0;
}

void sr_queue_free(sr_queue *q)
{
    if (q->requests)
        munmap(q->requests, q->requests_bytes);
    if (q->replies)
        munmap(q->replies, q->replies_bytes);
    if (q->requests_fd >= 0)
        close(q->requests_fd);
    if (q->replies_fd >= 0)
        close(q->replies_fd);
    free(q->free);
    free(q->left_out);
    *q = (sr_queue){.requests_fd = -1, .replies_fd = -1};
}

static sr_slot *slot_at(const sr_requests *r, uint32_t index)
{
    return (sr_slot *)(uintptr_t)((const char *)r + r->slots_at + (size_t)index * SR_SLOT_BYTES);
}

static uint64_t number_of(const sr_slot *s)
{
    return atomic_load_explicit(&s->number, memory_order_relaxed);
}

sr_slot *sr_queue_at(const sr_queue *q, uint32_t index)
{
    return slot_at(q->requests, index);
}

void sr_queue_gone(sr_queue *q, uint32_t index, uint64_t number, uint32_t bits)
{
    atomic_store(&sr_queue_at(q, index)->gone, number << SR_GONE_BITS | bits);
}

/* A number that was taken back keeps its place in the ring until all before it were taken. */
static inline bool is_full(const sr_queue *q)
{
    return q->put - q->first > q->requests->mask;
}

bool sr_queue_room(sr_queue *q)
{
    if (is_full(q))
        sr_queue_waiting(q);
    return !is_full(q);
}

sr_slot *sr_queue_slot(sr_queue *q, uint32_t *index)
{
    if (!q->n_free || is_full(q)) {
        sr_queue_waiting(q);
        if (!q->n_free || is_full(q))
            return NULL;
    }
    *index = q->free[--q->n_free];
    return sr_queue_at(q, *index);
}

uint64_t sr_queue_put(sr_queue *q, uint32_t index)
{
    sr_requests *r = q->requests;
    uint64_t number = q->put;
    atomic_store_explicit(&sr_queue_at(q, index)->number, number, memory_order_relaxed);
    atomic_store_explicit(&q->replies->claims[index].word, claim_of(number, SR_OWNER_NOBODY),
                          memory_order_release);
    atomic_store_explicit(&r->ring[number & r->mask], index, memory_order_release);
    q->put++;
    atomic_store(&r->put, q->put); /* then look for sleepers, in this order: see sleepers.h */
    return number;
}

bool sr_queue_drop(sr_queue *q, uint32_t index, uint64_t number)
{
    uint64_t nobody = claim_of(number, SR_OWNER_NOBODY);
    if (!atomic_compare_exchange_strong(&q->replies->claims[index].word, &nobody,
                                        claim_of(number, SR_OWNER_EDGE)))
        return false;
    bool *left_out = &q->left_out[number & q->requests->mask];
    if (number >= q->first && !*left_out) { /* a worker may have given back a request */
        *left_out = true;
        q->n_left_out++;
    }
    return true;
}

int32_t sr_queue_owner(const sr_queue *q, uint32_t index, uint64_t number)
{
    uint64_t word = atomic_load_explicit(&q->replies->claims[index].word, memory_order_acquire);
    uint32_t owner = word & 0xffff;
    if (word >> OWNER_BITS != number || owner == SR_OWNER_NOBODY || owner > q->requests->rows)
        return -1;
    return (int32_t)owner - 1;
}

/* Clears the number too, so that a claim that a worker spoils later can't revive a free slot. */
void sr_queue_release(sr_queue *q, uint32_t index)
{
    atomic_store_explicit(&sr_queue_at(q, index)->number, 0, memory_order_relaxed);
    q->free[q->n_free++] = index;
}

bool sr_queue_again(sr_queue *q, uint32_t index, uint64_t number)
{
    if (q->put - number > q->requests->mask)
        return false;
    atomic_store_explicit(&q->requests->ring[number & q->requests->mask], index, memory_order_release);
    atomic_store(&q->replies->claims[index].word, claim_of(number, SR_OWNER_NOBODY));
    bool *left_out = &q->left_out[number & q->requests->mask];
    q->n_left_out -= *left_out;
    *left_out = false;

    /* the numbers from here to `first` were taken and do not wait: at 30,000/s, 80 ms hold 2,400 of them */
    for (uint64_t n = number + 1; n < q->first; n++)
        q->left_out[n & q->requests->mask] = true;
    if (number < q->first) {
        q->n_left_out += q->first - number - 1;
        q->first = number;
    }
    sr_queue_mend(q);
    return true;
}

bool sr_queue_retake(sr_queue *q, uint32_t index, uint64_t number)
{
    uint64_t word = atomic_load(&q->replies->claims[index].word);
    return word != claim_of(number, SR_OWNER_NOBODY) &&
           atomic_compare_exchange_strong(&q->replies->claims[index].word, &word,
                                          claim_of(number, SR_OWNER_EDGE));
}

void sr_queue_grant(sr_queue *q, uint32_t index, uint64_t number, uint32_t row)
{
    atomic_store(&q->replies->claims[index].word, claim_of(number, row + 1));
}

/* The request of this number waits: no worker has it. */
static bool waits(const sr_queue *q, uint64_t number)
{
    uint32_t index =
        atomic_load_explicit(&q->requests->ring[number & q->requests->mask], memory_order_relaxed);
    uint64_t word = atomic_load_explicit(&q->replies->claims[index].word, memory_order_acquire);
    return word == claim_of(number, SR_OWNER_NOBODY) && number_of(sr_queue_at(q, index)) == number;
}

bool sr_queue_waits(const sr_queue *q, uint32_t index, uint64_t number)
{
    return atomic_load(&q->replies->claims[index].word) == claim_of(number, SR_OWNER_NOBODY);
}

bool sr_queue_hidden(const sr_queue *q, uint64_t number)
{
    return number < q->first || q->left_out[number & q->requests->mask];
}

uint64_t sr_queue_waiting(sr_queue *q)
{
    while (q->first < q->put && !waits(q, q->first)) {
        bool *left_out = &q->left_out[q->first & q->requests->mask];
        q->n_left_out -= *left_out;
        *left_out = false;
        q->first++;
    }
    return q->put - q->first - q->n_left_out;
}

int64_t sr_queue_since(sr_queue *q)
{
    if (!sr_queue_waiting(q))
        return 0;
    uint32_t i = atomic_load_explicit(&q->requests->ring[q->first & q->requests->mask], memory_order_relaxed);
    return atomic_load_explicit(&sr_queue_at(q, i)->ready_at, memory_order_relaxed);
}

void sr_queue_mend(sr_queue *q)
{
    uint64_t head = atomic_load(&q->replies->head);
    sr_queue_waiting(q);
    if (head > q->first || head + q->requests->mask < q->first)
        atomic_store(&q->replies->head, q->first);
}

/* --- a worker --- */

int sr_consumer_open(sr_consumer *c, int requests_fd, int replies_fd, int ring_fd, uint32_t row)
{
    struct stat st, st2;
    *c = (sr_consumer){.row = row};
    if (fstat(requests_fd, &st) != 0 || fstat(replies_fd, &st2) != 0)
        return errno;
    if (st.st_size < (off_t)sizeof(sr_requests))
        return EPROTO;
    void *requests = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, requests_fd, 0);
    if (requests == MAP_FAILED)
        return errno;
    c->requests = requests;
    c->requests_bytes = (size_t)st.st_size;
    c->replies_bytes = replies_bytes(c->requests->slots);
    if (c->requests->layout != SR_QUEUE_LAYOUT || row >= c->requests->rows ||
        st2.st_size != (off_t)c->replies_bytes) {
        sr_consumer_close(c);
        return EPROTO;
    }
    void *replies = mmap(NULL, c->replies_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, replies_fd, 0);
    c->replies = replies == MAP_FAILED ? NULL : replies;
    c->ring = c->replies ? sr_ring_map(ring_fd) : NULL;
    int err = errno;
    if (c->ring)
        return 0;
    sr_consumer_close(c);
    return err;
}

void sr_consumer_close(sr_consumer *c)
{
    if (c->requests)
        munmap((void *)(uintptr_t)c->requests, c->requests_bytes);
    if (c->replies)
        munmap(c->replies, c->replies_bytes);
    sr_ring_unmap(c->ring);
    *c = (sr_consumer){0};
}

sr_claim_result sr_consumer_begin(sr_consumer *c, uint32_t index, uint64_t number)
{
    _Atomic uint64_t *word = &c->replies->claims[index].word;
    uint64_t mine = claim_of(number, c->row + 1), edges = claim_of(number, SR_OWNER_EDGE);
    atomic_store(&c->ring->began, number); /* store first, then look: see sr_queue_retake */
    uint64_t now = atomic_load(word);
    if (now == mine)
        return SR_CLAIM_MINE;
    if (now == edges)
        return SR_CLAIM_DOUBTED;
    atomic_store(&c->ring->began, 0); /* then look again: the edge may have acted on the announcement */
    now = atomic_load(word);
    return now == mine || now == edges ? SR_CLAIM_DOUBTED : SR_CLAIM_LOST;
}

/*
 * No request older than those in the ring can wait. A hint below that was spoiled, and counting up from it
 * would take long.
 */
static uint64_t from(const sr_requests *r, uint64_t head, uint64_t put)
{
    uint64_t held = (uint64_t)r->mask + 1;
    return put - head > held ? put - held : head;
}

bool sr_consumer_forgo(sr_consumer *c, uint32_t index, uint64_t number)
{
    /* then look: a request that the edge has granted before stays granted */
    atomic_store(&c->ring->began, 0);
    return atomic_load(&c->replies->claims[index].word) != claim_of(number, c->row + 1);
}

const sr_slot *sr_consumer_take(sr_consumer *c, uint32_t *index)
{
    const sr_requests *r = c->requests;
    uint64_t seen = atomic_load_explicit(&c->replies->head, memory_order_relaxed), head = seen;
    for (;;) {
        uint64_t put = atomic_load(&r->put);
        if (head >= put)
            return NULL;
        head = from(r, head, put);
        uint32_t i = atomic_load_explicit(&r->ring[head & r->mask], memory_order_acquire);
        _Atomic uint64_t *word = &c->replies->claims[i].word;
        uint64_t nobody = claim_of(head, SR_OWNER_NOBODY);
        bool mine = atomic_load_explicit(word, memory_order_relaxed) == nobody &&
                    atomic_compare_exchange_strong(word, &nobody, claim_of(head, c->row + 1));
        uint64_t next = seen;
        if (atomic_compare_exchange_strong(&c->replies->head, &next, head + 1))
            next = head + 1;
        /* otherwise its slot is free and its claim was spoiled */
        if (mine && number_of(slot_at(r, i)) == head) {
            *index = i;
            c->number = head;
            return slot_at(r, i);
        }
        seen = head = next > head ? next : head + 1;
    }
}

uint64_t sr_consumer_waiting(const sr_consumer *c)
{
    uint64_t put = atomic_load_explicit(&c->requests->put, memory_order_acquire);
    uint64_t head = atomic_load_explicit(&c->replies->head, memory_order_relaxed);
    return put > head ? put - head : 0;
}

int64_t sr_consumer_oldest(const sr_consumer *c)
{
    const sr_requests *r = c->requests;
    uint64_t number = atomic_load_explicit(&c->replies->head, memory_order_relaxed);
    uint64_t put = atomic_load(&r->put);
    for (number = number < put ? from(r, number, put) : put; number < put; number++) {
        uint32_t i = atomic_load_explicit(&r->ring[number & r->mask], memory_order_acquire);
        if (i < r->slots && atomic_load_explicit(&c->replies->claims[i].word, memory_order_acquire) ==
                                claim_of(number, SR_OWNER_NOBODY))
            return atomic_load_explicit(&slot_at(r, i)->placed_at, memory_order_relaxed);
    }
    return INT64_MAX;
}
