/*
 * share: queue, rings and sleepers with threads that stand for processes, for the thread sanitizer
 * (dev/tsan): what one side writes without an atomic is ordered before what the other reads. The edge doubts
 * claims all the time, whether they are false or not: each request is served once all the same. Between
 * requests, workers publish to all edges.
 */
#include "share/queue.h"
#include "share/reply.h"
#include "share/sleepers.h"
#include "worker/worker.h"

#include "tap.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 16, ROWS = 4, EDGES = 2, REQUESTS = 10000, PAYLOAD = 200, EACH = 16, ITEM_MAX = 100000 };

typedef struct edge {
    uint32_t number;
    sr_queue queue;
    sr_ring *rings[ROWS];
    sr_reader readers[ROWS];
    uint64_t numbers[SLOTS]; /* in this slot; 0: free */
    uint64_t put, answered;
    uint32_t robbed, granted;
    uint32_t items[ROWS]; /* of each worker, so far */
    size_t item[ROWS];    /* bytes of the one that comes */
    _Atomic uint32_t served[REQUESTS + 1];
} edge;

static edge edges[EDGES];
static sr_sleepers sleepers, still;
static uint32_t published[ROWS];
static _Atomic uint32_t wrong, lost;
static _Atomic uint32_t done;
static _Atomic bool over, heard;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- a worker --- */

static bool still_mine(sr_consumer *c, uint32_t slot)
{
    sr_claim_result claim;
    if (c->number % 64 == 0)
        sched_yield(); /* it stands still, and is robbed */
    while ((claim = sr_consumer_begin(c, slot, c->number)) == SR_CLAIM_DOUBTED)
        sched_yield();
    return claim == SR_CLAIM_MINE;
}

static void reply(sr_consumer *c, uint32_t slot, const sr_slot *s)
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

/* An item of each worker, by its number: so many times the same byte */
static size_t item_bytes(uint32_t number)
{
    return number % 50 ? 1 + number * 37 % 3000 : ITEM_MAX;
}

static char item_byte(uint32_t row, uint32_t number)
{
    return (char)(row * 50 + number);
}

/* All edges are known, and none comes or goes for it. */
static void publisher(sr_worker *w, const sr_consumer *c, uint32_t row)
{
    static const _Atomic uint32_t mine = 1;
    *w = (sr_worker){.sleepers = &still, .mine = &mine, .row = row, .looked = true, .n_open = EDGES};
    for (int i = 0; i < EDGES; i++) {
        w->edges[i] = (sr_worker_line){.line = -1, .bell = -1, .pid = getpid(), .queue = c[i]};
        w->open[i] = &w->edges[i];
    }
}

static void publish(sr_worker *w, char *text)
{
    uint32_t number = ++published[w->row];
    size_t len = item_bytes(number);
    memset(text, item_byte(w->row, number), len);
    if (!sr_worker_publish(w, sr_bytes_of(text, len)))
        atomic_fetch_add(&wrong, 1);
}

/* Of those that are there, the one with the oldest request. */
static int oldest(sr_consumer *c)
{
    int best = -1;
    int64_t first = INT64_MAX;
    for (int i = 0; i < EDGES; i++) {
        int64_t at = atomic_load(&sleepers.lobby[i]) ? sr_consumer_oldest(&c[i]) : INT64_MAX;
        if (at < first) {
            first = at;
            best = i;
        }
    }
    return best;
}

static bool waits(const sr_consumer *c)
{
    for (int i = 0; i < EDGES; i++)
        if (atomic_load(&sleepers.lobby[i]) && sr_consumer_waiting(&c[i]))
            return true;
    return false;
}

static void *work(void *at)
{
    uint32_t row = (uint32_t)(uintptr_t)at;
    sr_consumer c[EDGES];
    /* the same mappings as the edges': the sanitizer knows memory by its address */
    for (int i = 0; i < EDGES; i++)
        c[i] =
            (sr_consumer){edges[i].queue.requests, edges[i].queue.replies, edges[i].rings[row], .row = row};
    char *text = malloc(ITEM_MAX);
    sr_worker w;
    publisher(&w, c, row);
    sr_sleepers_search(&sleepers, row);
    for (int turn = 0; !atomic_load(&over); turn++) {
        uint32_t slot;
        if (turn % EACH == 0)
            publish(&w, text);
        int i = oldest(c);
        const sr_slot *s = i < 0 ? NULL : sr_consumer_take(&c[i], &slot);
        if (!s) {
            uint32_t word = sr_sleepers_begin(&sleepers, row);
            if (!waits(c) && !atomic_load(&over))
                sr_sleepers_sleep(&sleepers, row, word, 10000000);
            sr_sleepers_end(&sleepers, row);
            continue;
        }
        sr_sleepers_found(&sleepers, row);
        if (still_mine(&c[i], slot)) {
            atomic_fetch_add(&edges[i].served[c[i].number], 1);
            reply(&c[i], slot, s);
        } else {
            atomic_fetch_add(&lost, 1);
        }
        sr_sleepers_search(&sleepers, row);
    }
    free(text);
    return NULL;
}

/* --- an edge --- */

/* In order, and whole. */
static void item(edge *ed, uint32_t row, const sr_record *r, const char *payload)
{
    uint32_t number = ed->items[row] + 1;
    size_t len = r->bytes - sizeof *r;
    for (size_t i = 0; i < len; i++)
        if (payload[i] != item_byte(row, number))
            atomic_fetch_add(&wrong, 1);
    ed->item[row] += len;
    if (r->flags & SR_REPLY_MORE)
        return;
    if (ed->item[row] != item_bytes(number))
        atomic_fetch_add(&wrong, 1);
    ed->items[row] = number;
    ed->item[row] = 0;
}

static void hear(edge *ed)
{
    uint64_t who = atomic_exchange(&ed->queue.replies->replied[0], 0);
    for (uint32_t row = 0; row < ROWS; row++) {
        sr_record r;
        const char *payload;
        while (who >> row & 1 && sr_ring_next(&ed->readers[row], &r, &payload) == SR_RING_RECORD) {
            if (r.kind == SR_REPLY_PUBLISH) {
                item(ed, row, &r, payload);
                sr_ring_done(&ed->readers[row]);
                continue;
            }
            for (int i = 0; i < PAYLOAD; i++)
                if (payload[i] != (char)r.number)
                    atomic_fetch_add(&wrong, 1);
            if (r.slot >= SLOTS || ed->numbers[r.slot] != r.number) {
                atomic_fetch_add(&wrong, 1);
            } else {
                ed->numbers[r.slot] = 0;
                sr_queue_release(&ed->queue, r.slot);
                ed->answered++;
            }
            sr_ring_done(&ed->readers[row]);
        }
        sr_ring_tell(&ed->readers[row]);
    }
}

static void doubt(edge *ed, uint32_t slot)
{
    uint64_t number = ed->numbers[slot];
    if (!number || !sr_queue_retake(&ed->queue, slot, number))
        return;
    for (uint32_t row = 0; row < ROWS; row++)
        if (atomic_load(&ed->rings[row]->began) == number) {
            sr_queue_grant(&ed->queue, slot, number, row);
            ed->granted++;
            if (atomic_load(&ed->rings[row]->began) != number)
                doubt(ed, slot);
            return;
        }
    /* it may have begun and have gone on to another: then its reply is in the ring */
    atomic_store(&ed->queue.replies->replied[0], (1u << ROWS) - 1);
    hear(ed);
    if (ed->numbers[slot] == number && sr_queue_again(&ed->queue, slot, number))
        ed->robbed++;
}

static void burst(edge *ed, int n)
{
    for (; n && ed->put < REQUESTS; n--) {
        uint32_t slot;
        sr_slot *s = sr_queue_slot(&ed->queue, &slot);
        if (!s)
            break;
        memset(s->data, (char)(ed->put + 1), PAYLOAD);
        atomic_store_explicit(&s->ready_at, now(), memory_order_relaxed);
        ed->numbers[slot] = sr_queue_put(&ed->queue, slot);
        ed->put++;
    }
}

/*
 * It comes, and goes when all is answered: then the workers look at the other alone. What is published it
 * hears until all have ended.
 */
static void *run(void *at)
{
    edge *ed = at;
    unsigned seed = 3 + ed->number;
    int64_t end = now() + INT64_C(60000000000), mended = 0;
    sr_sleepers_arrive(&sleepers, ed->number, 1);
    while (ed->answered < REQUESTS && now() < end) {
        burst(ed, rand_r(&seed) % 6);
        if (sr_queue_waiting(&ed->queue) && !sr_sleepers_searching(&sleepers))
            sr_sleepers_wake_one(&sleepers);
        if (now() - mended > 1000000) {
            mended = now();
            sr_queue_mend(&ed->queue);
            sr_sleepers_wake_one(&sleepers);
        }
        hear(ed);
        uint32_t slot = (uint32_t)rand_r(&seed) % SLOTS;
        if (rand_r(&seed) % 8 == 0)
            doubt(ed, slot);
    }
    sr_sleepers_part(&sleepers, ed->number);
    atomic_fetch_add(&done, 1);
    while (!atomic_load(&heard)) {
        hear(ed);
        sched_yield();
    }
    hear(ed);
    return NULL;
}

static bool open_edge(edge *ed, uint32_t number)
{
    int fd;
    ed->number = number;
    if (sr_queue_new(&ed->queue, SLOTS, ROWS))
        return false;
    for (uint32_t row = 0; row < ROWS; row++) {
        ed->rings[row] = sr_ring_new(&fd);
        sr_reader_init(&ed->readers[row], ed->rings[row]);
    }
    return true;
}

static void judge(const edge *ed)
{
    uint32_t twice = 0, never = 0;
    for (uint64_t n = 1; n <= REQUESTS; n++) {
        twice += ed->served[n] > 1;
        never += ed->served[n] == 0;
    }
    printf("# edge %u: %u robbed, %u granted\n", ed->number, ed->robbed, ed->granted);
    is_int((long long)ed->answered, REQUESTS, "each request was answered");
    is_int(twice, 0, "none was served twice");
    is_int(never, 0, "none was left out");
    for (uint32_t row = 0; row < ROWS; row++)
        is_int(ed->items[row], published[row], "all items of a worker came");
}

int main(void)
{
    pthread_t workers[ROWS], theirs[EDGES];
    sr_sleepers_init(&sleepers, ROWS);
    for (uint32_t i = 0; i < EDGES; i++)
        if (!open_edge(&edges[i], i))
            return 1;
    for (uint32_t row = 0; row < ROWS; row++)
        pthread_create(&workers[row], NULL, work, (void *)(uintptr_t)row);
    for (int i = 0; i < EDGES; i++)
        pthread_create(&theirs[i], NULL, run, &edges[i]);
    while (atomic_load(&done) < EDGES)
        usleep(1000);
    atomic_store(&over, true);
    for (uint32_t row = 0; row < ROWS; row++) {
        sr_sleepers_wake(&sleepers, row);
        pthread_join(workers[row], NULL);
    }
    atomic_store(&heard, true);
    for (int i = 0; i < EDGES; i++)
        pthread_join(theirs[i], NULL);
    for (int i = 0; i < EDGES; i++)
        judge(&edges[i]);
    printf("# %u, %u, %u and %u items\n", published[0], published[1], published[2], published[3]);
    printf("# %u lost by their worker\n", atomic_load(&lost));
    is_int(atomic_load(&wrong), 0, "and each byte was what it should be");
    for (int i = 0; i < EDGES; i++) {
        for (uint32_t row = 0; row < ROWS; row++)
            sr_ring_unmap(edges[i].rings[row]);
        sr_queue_free(&edges[i].queue);
    }
    return done_testing();
}
