/*
 * queue: many workers, killed at any instruction: each request is served once, or was with the worker that
 * was killed
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_ADD_SEALS */
#endif
#include "share/queue.h"
#include "share/sleepers.h"

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 64, ROWS = 6, REQUESTS = 60000, KILLS = 500 };

static sr_queue queue;
static sr_sleepers *sleepers;
static _Atomic uint32_t *served; /* by number */
static sr_reader readers[ROWS];
static int ring_fds[ROWS];
static pid_t pids[ROWS];
static uint64_t numbers[SLOTS]; /* in this slot; 0: free */

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *shared(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        exit(1);
    return at;
}

/* Now and then for a while, so that kills meet every step */
static void linger(uint64_t n)
{
    if (n % 16 == 0)
        usleep(100);
    else if (n % 4 == 0)
        sched_yield();
}

static _Noreturn void work(uint32_t row)
{
    sr_consumer c;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sr_consumer_open(&c, queue.requests_fd, queue.replies_fd, ring_fds[row], row))
        _exit(1);
    sr_sleepers_search(sleepers, row);
    for (;;) {
        uint32_t slot;
        const sr_slot *s = sr_consumer_take(&c, &slot);
        if (!s) {
            uint32_t word = sr_sleepers_begin(sleepers, row);
            if (!sr_consumer_waiting(&c))
                sr_sleepers_sleep(sleepers, row, word, -1);
            sr_sleepers_end(sleepers, row);
            continue;
        }
        sr_sleepers_found(sleepers, row);
        linger(s->number);
        if (sr_consumer_begin(&c, slot, s->number) != SR_CLAIM_MINE)
            _exit(2);
        atomic_fetch_add(&served[s->number], 1);
        linger(s->number / 2);
        sr_record *r;
        while (!(r = sr_ring_reserve(c.ring, 0)))
            ;
        *r = (sr_record){.kind = 1, .number = s->number, .slot = slot};
        sr_ring_commit(c.ring, r, 0);
        sr_sleepers_search(sleepers, row);
    }
}

static void start(uint32_t row)
{
    if (ring_fds[row] > 0)
        close(ring_fds[row]);
    sr_ring_unmap(readers[row].ring);
    sr_reader_init(&readers[row], sr_ring_new(&ring_fds[row]));
    fflush(stdout);
    pids[row] = fork();
    if (!pids[row])
        work(row);
}

static uint64_t answered, wrong;

static void hear(uint32_t row)
{
    sr_record r;
    const char *payload;
    while (sr_ring_next(&readers[row], &r, &payload) == SR_RING_RECORD) {
        if (r.slot >= SLOTS || numbers[r.slot] != r.number ||
            sr_queue_owner(&queue, r.slot, r.number) != (int32_t)row)
            wrong++;
        else {
            numbers[r.slot] = 0;
            sr_queue_release(&queue, r.slot);
            answered++;
        }
        sr_ring_done(&readers[row]);
    }
    sr_ring_tell(&readers[row]);
}

static uint64_t lost, again;

static void bury(uint32_t row)
{
    kill(pids[row], SIGKILL);
    waitpid(pids[row], NULL, 0);
    hear(row); /* what it said whole counts */
    sr_sleepers_forget(sleepers, row);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        if (!numbers[slot] || sr_queue_owner(&queue, slot, numbers[slot]) != (int32_t)row)
            continue;
        if (atomic_load(&readers[row].ring->began) != numbers[slot] &&
            sr_queue_again(&queue, slot, numbers[slot])) {
            again++;
            continue;
        }
        lost++;
        numbers[slot] = 0;
        sr_queue_release(&queue, slot);
    }
    start(row);
}

/* As an edge does: a worker that looks for work finds it; after a millisecond the next one is woken */
static void look_after(void)
{
    static int64_t since;
    if (!sr_queue_waiting(&queue)) {
        since = 0;
        return;
    }
    bool late = since && now() - since > 1000000;
    if (!since || late)
        since = now();
    if (late)
        sr_queue_mend(&queue);
    if (late || !sr_sleepers_searching(sleepers))
        sr_sleepers_wake_one(sleepers);
}

static void killed(void)
{
    unsigned seed = 1;
    uint64_t put = 0, twice = 0, never = 0;
    int kills = 0;
    int64_t next = now(), end = now() + INT64_C(60000000000);
    for (uint32_t row = 0; row < ROWS; row++)
        start(row);
    while ((put < REQUESTS || kills < KILLS || answered + lost < put) && now() < end) {
        uint32_t slot;
        for (int burst = rand_r(&seed) % 8; burst && (put < REQUESTS || kills < KILLS); burst--) {
            sr_slot *s = put + 1 < REQUESTS * 4 ? sr_queue_slot(&queue, &slot) : NULL;
            if (!s)
                break;
            s->ready_at = now();
            numbers[slot] = sr_queue_put(&queue, slot);
            put++;
        }
        look_after();
        for (uint32_t row = 0; row < ROWS; row++)
            hear(row);
        if (kills < KILLS && now() > next) {
            bury((uint32_t)rand_r(&seed) % ROWS);
            kills++;
            next = now() + (int64_t)(rand_r(&seed) % 3000) * 1000;
        }
    }
    for (uint64_t n = 1; n <= put; n++) {
        uint32_t times = atomic_load(&served[n]);
        twice += times > 1;
        never += times == 0;
    }
    printf("# %llu requests, %d kills: %llu were with the killed, %llu had not begun and were served by "
           "others\n",
           (unsigned long long)put, kills, (unsigned long long)lost, (unsigned long long)again);
    is_int(kills, KILLS, "500 kills");
    is_int((long long)(answered + lost), (long long)put,
           "each request was answered, or was with a worker that was killed");
    is_int((long long)wrong, 0, "no worker spoke of what it had not");
    is_int((long long)twice, 0, "none was served twice");
    ok(never <= lost, "none was left out (%llu of the lost had just begun)", (unsigned long long)never);
    ok(lost <= KILLS, "a kill costs one request at most");
    ok(lost && again, "kills have met workers with a request, begun and not begun");
    for (uint32_t row = 0; row < ROWS; row++) {
        kill(pids[row], SIGKILL);
        waitpid(pids[row], NULL, 0);
    }
}

/* A queue and its one worker, row 0 */
typedef struct pair {
    sr_queue q;
    sr_consumer c;
    sr_ring *ring;
    int ring_fd;
} pair;

static void pair_open(pair *p, uint32_t slots)
{
    p->ring = sr_ring_new(&p->ring_fd);
    sr_queue_new(&p->q, slots, 1);
    sr_consumer_open(&p->c, p->q.requests_fd, p->q.replies_fd, p->ring_fd, 0);
}

static void pair_close(pair *p)
{
    sr_consumer_close(&p->c);
    sr_queue_free(&p->q);
    sr_ring_unmap(p->ring);
    close(p->ring_fd);
}

static void taken_back(void)
{
    sr_queue q;
    sr_consumer c;
    uint32_t a, b, i;
    int ring_fd;
    sr_ring *ring = sr_ring_new(&ring_fd);
    is_int(sr_queue_new(&q, 4, 2), 0, "a queue");
    is_int(sr_consumer_open(&c, q.requests_fd, q.replies_fd, ring_fd, 1), 0, "a worker opens it");
    is_int(sr_consumer_open(&(sr_consumer){0}, q.requests_fd, q.replies_fd, q.replies_fd, 1), EPROTO,
           "but not with a ring that is none");
    sr_queue_slot(&q, &a);
    uint64_t first = sr_queue_put(&q, a);
    sr_queue_slot(&q, &b);
    uint64_t second = sr_queue_put(&q, b);
    is_int((long long)sr_queue_waiting(&q), 2, "two wait");
    ok(sr_queue_drop(&q, a, first), "the edge takes the first back");
    ok(!sr_queue_drop(&q, a, first), "once");
    is_int((long long)sr_queue_waiting(&q), 1, "one waits");
    ok(sr_consumer_take(&c, &i) && i == b, "the worker gets the second");
    ok(!sr_queue_drop(&q, b, second), "which the edge can't take back any more");
    is_int(sr_queue_owner(&q, b, second), 1, "it is that row's");
    ok(!sr_consumer_take(&c, &i), "there is no third");
    ok(sr_queue_again(&q, b, second) && sr_consumer_take(&c, &i) && i == b,
       "given back, it can be taken again");
    sr_queue_release(&q, a);
    atomic_store(&q.replies->head, 99);
    sr_queue_slot(&q, &a);
    sr_queue_put(&q, a);
    ok(!sr_consumer_take(&c, &i), "a worker that has spoiled the hint hides what waits");
    sr_queue_mend(&q);
    ok(sr_consumer_take(&c, &i) && i == a, "until the edge sets it right");
    sr_queue_release(&q, b);
    q.first = second; /* as if it had not been looked past */
    atomic_store(&q.replies->claims[b].word, second << 16 | SR_OWNER_NOBODY);
    atomic_store(&q.replies->head, second);
    is_int((long long)sr_queue_waiting(&q), 0, "a spoiled claim of a free slot is nothing that waits");
    ok(!sr_consumer_take(&c, &i), "nor anything to take");
    bool seals = on_linux("nobody can change the requests, or the size of anything", "seals");
    void *writable = !seals ? NULL : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, q.requests_fd, 0);
    if (seals)
        ok(writable == MAP_FAILED && errno == EPERM, "nobody can map the requests writable");
    for (int n = 0; n < 3 && seals; n++) {
        int fd = n == 0 ? q.requests_fd : n == 1 ? q.replies_fd : ring_fd;
        ok(ftruncate(fd, 0) != 0 && errno == EPERM, "nor make %s shorter",
           n == 0   ? "them"
           : n == 1 ? "the claims"
                    : "a ring");
        ok(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) != 0, "nor shut others out");
    }
    for (int n = 0; n < 4; n++)
        sr_queue_slot(&q, &a);
    ok(!sr_queue_slot(&q, &a), "there are as many slots as there are");
    sr_consumer_close(&c);
    sr_queue_free(&q);
    sr_ring_unmap(ring);
    close(ring_fd);
    is_int(sr_queue_new(&q, 0, 1), EINVAL, "none would be none");
}

/*
 * Behind a request that comes back, those that others took meanwhile count no more as waiting: they would
 * fill --max-queue
 */
static void overtaken(void)
{
    pair p;
    uint32_t slow, slot, taken;
    pair_open(&p, 64);
    sr_queue_slot(&p.q, &slow);
    uint64_t number = sr_queue_put(&p.q, slow);
    ok(sr_consumer_take(&p.c, &taken) && taken == slow, "a worker takes one, and is slow to begin");
    for (int n = 0; n < 300; n++) {
        sr_queue_slot(&p.q, &slot);
        sr_queue_put(&p.q, slot);
        if (!sr_consumer_take(&p.c, &taken) || taken != slot)
            break;
        sr_queue_release(&p.q, slot);
    }
    is_int((long long)sr_queue_waiting(&p.q), 0, "300 others have been taken");
    ok(sr_queue_retake(&p.q, slow, number) && sr_queue_again(&p.q, slow, number), "the first comes back");
    is_int((long long)sr_queue_waiting(&p.q), 1, "it waits alone");
    sr_queue_slot(&p.q, &slot);
    uint64_t newest = sr_queue_put(&p.q, slot);
    is_int((long long)sr_queue_waiting(&p.q), 2, "and one behind it");
    ok(sr_queue_drop(&p.q, slot, newest) && sr_queue_again(&p.q, slot, newest),
       "which is taken back, and given again");
    is_int((long long)sr_queue_waiting(&p.q), 2, "two wait");
    ok(sr_consumer_take(&p.c, &taken) && taken == slow, "the older is the first");
    is_int((long long)sr_queue_waiting(&p.q), 1, "one waits");
    ok(sr_consumer_take(&p.c, &taken) && taken == slot, "then the other");
    is_int((long long)sr_queue_waiting(&p.q), 0, "none waits");
    pair_close(&p);
}

/* While the oldest waits, numbers behind it are taken back again and again: it must not be written over */
static void kept_waiting(void)
{
    pair p;
    uint32_t oldest, slot;
    unsigned refused = 0;
    pair_open(&p, 4);
    sr_queue_slot(&p.q, &oldest);
    sr_queue_put(&p.q, oldest);
    for (int n = 0; n < 10000; n++) {
        if (!sr_queue_slot(&p.q, &slot)) {
            refused++;
            continue;
        }
        uint64_t number = sr_queue_put(&p.q, slot);
        sr_queue_drop(&p.q, slot, number);
        sr_queue_release(&p.q, slot);
    }
    ok(refused > 0, "there is an end to what may be taken back behind one that waits");
    is_int((long long)sr_queue_waiting(&p.q), 1, "one waits");
    ok(sr_consumer_take(&p.c, &slot) && slot == oldest, "and it is still to be had");
    is_int((long long)sr_queue_waiting(&p.q), 0, "then none");
    ok(sr_queue_slot(&p.q, &slot) != NULL, "and there is room again");
    uint64_t number = sr_queue_put(&p.q, slot);
    is_int((long long)sr_queue_waiting(&p.q), 1, "the next one is seen to wait");
    atomic_store(&p.q.replies->claims[slot].word, number << 16 | 1);
    ok(sr_queue_waiting(&p.q) == 0 && !sr_queue_waits(&p.q, slot, number), "a claim says that it is had");
    is_int(sr_consumer_begin(&p.c, slot, number), SR_CLAIM_MINE, "by that worker");
    ok(sr_queue_retake(&p.q, slot, number), "the edge doubts it");
    is_int(sr_consumer_begin(&p.c, slot, number), SR_CLAIM_DOUBTED, "which the worker sees");
    sr_queue_grant(&p.q, slot, number, 0);
    is_int(sr_consumer_begin(&p.c, slot, number), SR_CLAIM_MINE, "until it is believed");
    sr_queue_retake(&p.q, slot, number);
    ok(sr_queue_again(&p.q, slot, number), "or it is to be had again");
    is_int(sr_consumer_begin(&p.c, slot, number), SR_CLAIM_LOST, "and lost to the worker");
    is_int((long long)sr_queue_waiting(&p.q), 1, "as it waits");
    ok(!sr_queue_retake(&p.q, slot, number), "and is not doubted then");
    pair_close(&p);
}

/*
 * A worker writes into the claims what it likes. Whatever it is, no request is forgotten, and what waits is
 * counted right
 */
static void given_back(void)
{
    pair p;
    uint32_t slot[4], taken;
    uint64_t number[4];
    pair_open(&p, 64);
    for (int i = 0; i < 4; i++) {
        sr_queue_slot(&p.q, &slot[i]);
        number[i] = sr_queue_put(&p.q, slot[i]);
    }
    for (int i = 0; i < 4; i++)
        sr_consumer_take(&p.c, &taken);
    is_int((long long)sr_queue_waiting(&p.q), 0, "four have been taken");
    sr_queue_retake(&p.q, slot[0], number[0]);
    sr_queue_again(&p.q, slot[0], number[0]);
    atomic_store(&p.q.replies->claims[slot[2]].word, number[2] << 16 | SR_OWNER_NOBODY);
    is_int((long long)sr_queue_waiting(&p.q), 1, "the first comes back");
    ok(sr_queue_hidden(&p.q, number[2]), "the third is nobody's, says its claim, and does not count");
    ok(sr_queue_drop(&p.q, slot[2], number[2]), "the edge takes it back, as its client has gone");
    sr_queue_release(&p.q, slot[2]);
    is_int((long long)sr_queue_waiting(&p.q), 1, "one waits still");
    ok(sr_consumer_take(&p.c, &taken) && taken == slot[0], "and is taken");
    is_int((long long)sr_queue_waiting(&p.q), 0,
           "none waits: a number below it would be one that no queue has room for");

    atomic_store(&p.q.replies->claims[slot[1]].word, number[1] << 16 | SR_OWNER_NOBODY);
    atomic_store(&p.q.replies->claims[slot[3]].word, number[3] << 16 | SR_OWNER_NOBODY);
    ok(sr_queue_hidden(&p.q, number[1]) && sr_queue_again(&p.q, slot[1], number[1]),
       "two more are nobody's; one is put back");
    ok(sr_queue_hidden(&p.q, number[3]) && sr_queue_again(&p.q, slot[3], number[3]),
       "so is the other, behind it");
    is_int((long long)sr_queue_waiting(&p.q), 2, "both wait");
    ok(sr_consumer_take(&p.c, &taken) && taken == slot[1] && sr_queue_waiting(&p.q) == 1,
       "one is taken, one waits");
    ok(sr_consumer_take(&p.c, &taken) && taken == slot[3] && sr_queue_waiting(&p.q) == 0, "both are");
    pair_close(&p);
}

/* The hint where workers begin lies far back: they must not count up to what waits */
static void far_back(void)
{
    pair p;
    uint32_t slot, taken;
    pair_open(&p, 4);
    p.q.put = p.q.first = UINT64_C(1) << 40; /* two weeks at a million a second */
    atomic_store(&p.q.requests->put, p.q.put);
    atomic_store(&p.q.replies->head, 0);
    sr_queue_slot(&p.q, &slot);
    atomic_store(&sr_queue_at(&p.q, slot)->placed_at, 77);
    sr_queue_put(&p.q, slot);
    alarm(20);
    is_int(sr_consumer_oldest(&p.c), 77, "a worker finds out what is the oldest, wherever it begins");
    ok(sr_consumer_take(&p.c, &taken) && taken == slot, "and takes it");
    ok(!sr_consumer_take(&p.c, &taken) && !sr_consumer_waiting(&p.c), "then none waits: it can sleep");
    alarm(0);
    pair_close(&p);
}

/*
 * An edge that stands still between a doubt and its end: the worker goes on without the request, and the edge
 * must know
 */
static void forgone(void)
{
    pair p;
    uint32_t slot, taken;
    pair_open(&p, 4);
    sr_queue_slot(&p.q, &slot);
    uint64_t number = sr_queue_put(&p.q, slot);
    sr_consumer_take(&p.c, &taken);
    sr_queue_retake(&p.q, slot, number);
    is_int(sr_consumer_begin(&p.c, slot, number), SR_CLAIM_DOUBTED, "an edge doubts a claim");
    ok(atomic_load(&p.ring->began) == number, "and can see that its worker wants to begin");
    sr_queue_grant(&p.q, slot, number, 0);
    ok(!sr_consumer_forgo(&p.c, slot, number), "a worker can't go on without what was granted");
    is_int(sr_consumer_begin(&p.c, slot, number), SR_CLAIM_MINE, "it begins");
    sr_queue_retake(&p.q, slot, number);
    ok(sr_consumer_forgo(&p.c, slot, number), "without what is in doubt it can");
    ok(atomic_load(&p.ring->began) != number, "and says that it has not begun");
    pair_close(&p);
}

int main(void)
{
    sleepers = shared(SR_SLEEPERS_BYTES);
    sr_sleepers_init(sleepers, ROWS);
    served = shared((REQUESTS * 4 + 2) * sizeof *served);
    taken_back();
    overtaken();
    kept_waiting();
    given_back();
    far_back();
    forgone();
    if (sr_queue_new(&queue, SLOTS, ROWS))
        return 1;
    killed();
    sr_queue_free(&queue);
    return done_testing();
}
