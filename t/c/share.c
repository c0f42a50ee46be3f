/*
 * share: queue, rings and sleepers with threads that stand for processes, for the thread sanitizer (dev/tsan): what one side
 * writes without an atomic is ordered before what the other reads. The edge doubts claims all the time, whether they are
 * false or not: each request is served once all the same.
 */
#include "share/queue.h"
#include "share/sleepers.h"

#include "tap.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { SLOTS = 16, ROWS = 4, REQUESTS = 20000, PAYLOAD = 200 };

static sr_queue queue;
static sr_sleepers sleepers;
static sr_ring *rings[ROWS];
static sr_reader readers[ROWS];
static uint64_t numbers[SLOTS]; /* in this slot; 0: free */
static _Atomic uint32_t served[REQUESTS + 1], wrong, lost;
static _Atomic bool over;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- a worker --- */

static bool still_mine(sr_counter *c, uint32_t slot)
{
    sr_counter_claim claim;
    if (c->number % 64 == 0)
        sched_yield(); /* it stands still, and is robbed */
    while ((claim = sr_counter_begin(c, slot, c->number)) == SR_CLAIM_DOUBTED)
        sched_yield();
    return claim == SR_CLAIM_MINE;
}

static void reply(sr_counter *c, uint32_t slot, const sr_slot *s)
{
    sr_record *r;
    for (int i = 0; i < PAYLOAD; i++)
        if (s->data[i] != (char)c->number)
            atomic_fetch_add(&wrong, 1);
    while (!(r = sr_ring_reserve(c->ring, PAYLOAD))) {
        uint32_t seen = sr_ring_want(c->ring);
        if ((r = sr_ring_reserve(c->ring, PAYLOAD)))
            break;
        sr_ring_wait(c->ring, seen, 1000000);
    }
    *r = (sr_record){.kind = 1, .number = c->number, .slot = slot};
    memset(r + 1, (char)c->number, PAYLOAD);
    sr_ring_commit(c->ring, r, PAYLOAD);
    atomic_fetch_or(&c->replies->replied[0], UINT64_C(1) << c->row);
}

static void *work(void *row)
{
    /* the same mapping as the edge's: the sanitizer knows memory by its address */
    sr_counter c = {queue.requests, queue.replies, *(sr_ring **)row,
                    .row = (uint32_t)((sr_ring **)row - rings)};
    sr_sleepers_search(&sleepers, c.row);
    while (!atomic_load(&over)) {
        uint32_t slot;
        const sr_slot *s = sr_counter_take(&c, &slot);
        if (!s) {
            uint32_t word = sr_sleepers_begin(&sleepers, c.row);
            if (!sr_counter_waiting(&c) && !atomic_load(&over))
                sr_sleepers_sleep(&sleepers, c.row, word, 10000000);
            sr_sleepers_end(&sleepers, c.row);
            continue;
        }
        sr_sleepers_found(&sleepers, c.row);
        if (still_mine(&c, slot)) {
            atomic_fetch_add(&served[c.number], 1);
            reply(&c, slot, s);
        } else {
            atomic_fetch_add(&lost, 1);
        }
        sr_sleepers_search(&sleepers, c.row);
    }
    return NULL;
}

/* --- the edge --- */

static uint64_t answered;

static void hear(void)
{
    uint64_t who = atomic_exchange(&queue.replies->replied[0], 0);
    for (uint32_t row = 0; row < ROWS; row++) {
        sr_record r;
        const char *payload;
        while (who >> row & 1 && sr_ring_next(&readers[row], &r, &payload) == SR_RING_RECORD) {
            for (int i = 0; i < PAYLOAD; i++)
                if (payload[i] != (char)r.number)
                    atomic_fetch_add(&wrong, 1);
            if (r.slot >= SLOTS || numbers[r.slot] != r.number)
                atomic_fetch_add(&wrong, 1);
            else {
                numbers[r.slot] = 0;
                sr_queue_release(&queue, r.slot);
                answered++;
            }
            sr_ring_done(&readers[row]);
        }
        sr_ring_tell(&readers[row]);
    }
}

static uint32_t robbed, granted;

static void doubt(uint32_t slot)
{
    if (!numbers[slot] || !sr_queue_retake(&queue, slot, numbers[slot]))
        return;
    for (uint32_t row = 0; row < ROWS; row++)
        if (atomic_load(&rings[row]->began) == numbers[slot]) {
            sr_queue_grant(&queue, slot, numbers[slot], row);
            granted++;
            if (atomic_load(&rings[row]->began) != numbers[slot])
                doubt(slot);
            return;
        }
    /* it may have begun and have gone on to another: then its reply is in the ring */
    uint64_t number = numbers[slot];
    atomic_store(&queue.replies->replied[0], (1u << ROWS) - 1);
    hear();
    if (numbers[slot] == number && sr_queue_again(&queue, slot, number))
        robbed++;
}

int main(void)
{
    pthread_t threads[ROWS];
    uint64_t put = 0;
    unsigned seed = 3;
    int fd;
    sr_sleepers_init(&sleepers, ROWS);
    if (sr_queue_new(&queue, SLOTS, ROWS))
        return 1;
    for (uint32_t row = 0; row < ROWS; row++) {
        rings[row] = sr_ring_new(&fd);
        sr_reader_init(&readers[row], rings[row]);
        pthread_create(&threads[row], NULL, work, &rings[row]);
    }
    int64_t end = now() + INT64_C(60000000000), mended = 0;
    while (answered < REQUESTS && now() < end) {
        uint32_t slot;
        for (int burst = rand_r(&seed) % 6; burst && put < REQUESTS; burst--) {
            sr_slot *s = sr_queue_slot(&queue, &slot);
            if (!s)
                break;
            memset(s->data, (char)(put + 1), PAYLOAD);
            numbers[slot] = sr_queue_put(&queue, slot);
            put++;
        }
        if (sr_queue_waiting(&queue) && !sr_sleepers_searching(&sleepers))
            sr_sleepers_wake_one(&sleepers);
        if (now() - mended > 1000000) {
            mended = now();
            sr_queue_mend(&queue);
            sr_sleepers_wake_one(&sleepers);
        }
        hear();
        slot = (uint32_t)rand_r(&seed) % SLOTS;
        if (rand_r(&seed) % 8 == 0)
            doubt(slot);
    }
    atomic_store(&over, true);
    for (uint32_t row = 0; row < ROWS; row++) {
        sr_sleepers_wake(&sleepers, row);
        pthread_join(threads[row], NULL);
    }
    uint32_t twice = 0, never = 0;
    for (uint64_t n = 1; n <= REQUESTS; n++) {
        twice += served[n] > 1;
        never += served[n] == 0;
    }
    printf("# %u robbed, %u granted, %u lost by their worker\n", robbed, granted, atomic_load(&lost));
    is_int((long long)answered, REQUESTS, "each request was answered");
    is_int(twice, 0, "none was served twice");
    is_int(never, 0, "none was left out");
    is_int(atomic_load(&wrong), 0, "and each byte was what it should be");
    for (uint32_t row = 0; row < ROWS; row++)
        sr_ring_unmap(rings[row]);
    sr_queue_free(&queue);
    return done_testing();
}
