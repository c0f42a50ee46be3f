/* ring: records between two processes, and what a hostile writer may put there */
#include "share/ring.h"

#include "tap.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static sr_ring *ring;
static sr_reader reader;

static bool put(uint16_t kind, uint64_t number, const void *payload, size_t len)
{
    sr_record *r = sr_ring_reserve(ring, len);
    if (!r)
        return false;
    *r = (sr_record){.kind = kind, .number = number};
    if (len)
        memcpy(r + 1, payload, len);
    sr_ring_commit(ring, r, len);
    return true;
}

static void in_order(void)
{
    sr_record r;
    const char *payload;
    is_int(sr_ring_next(&reader, &r, &payload), SR_RING_NONE, "an empty ring has nothing");
    put(1, 7, "hello", 5);
    put(2, 8, NULL, 0);
    ok(sr_ring_next(&reader, &r, &payload) == SR_RING_RECORD && r.kind == 1 && r.number == 7,
       "the first record");
    is_bytes(payload, r.bytes - sizeof r, "hello", "with its payload");
    sr_ring_done(&reader);
    ok(sr_ring_next(&reader, &r, &payload) == SR_RING_RECORD && r.kind == 2 && r.bytes == sizeof r,
       "the second is empty");
    sr_ring_done(&reader);
    is_int(sr_ring_next(&reader, &r, &payload), SR_RING_NONE, "and that was all");
    ok(sr_ring_waiting(ring) == 0, "the writer sees that all is taken");
    ok(!sr_ring_reserve(ring, SR_RECORD_MAX), "a record has a largest size");
}

/* Sizes that meet the end of the ring in every way, through more than 2^32 bytes of positions */
static void around(void)
{
    static char bytes[SR_RECORD_MAX];
    unsigned seed = 42, wrong = 0;
    uint64_t written = 0, read = 0, n = 0, m = 0;
    sr_record r;
    const char *payload;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7);
    atomic_store(&ring->put, 0xffff0000);
    atomic_store(&ring->taken, 0xffff0000);
    reader.taken = 0xffff0000;
    while (written < 64 * 1024 * 1024) {
        size_t len = (size_t)rand_r(&seed) % (SR_RECORD_MAX - sizeof r);
        if (put(3, n, bytes, len)) {
            written += len;
            n++;
            continue;
        }
        while (sr_ring_next(&reader, &r, &payload) == SR_RING_RECORD) {
            size_t got = r.bytes - sizeof r;
            wrong += r.number != m++ || memcmp(payload, bytes, got) != 0;
            read += got;
            sr_ring_done(&reader);
        }
    }
    while (sr_ring_next(&reader, &r, &payload) == SR_RING_RECORD) {
        wrong += r.number != m++;
        read += r.bytes - sizeof r;
        sr_ring_done(&reader);
    }
    is_int(wrong, 0, "64 MiB of records of any size come as they were written");
    ok(n == m && read == written, "all of them");
}

static void two_processes(void)
{
    enum { RECORDS = 200000 };
    sr_record r;
    const char *payload;
    uint64_t n = 0, wrong = 0;
    atomic_store(&ring->put, 0);
    atomic_store(&ring->taken, 0);
    sr_reader_init(&reader, ring);
    pid_t child = fork();
    if (!child) {
        for (uint64_t i = 0; i < RECORDS; i++)
            while (!put(1, i, &i, sizeof i)) {
                uint32_t seen = sr_ring_want(ring);
                if (put(1, i, &i, sizeof i))
                    break;
                sr_ring_wait(ring, seen, 1000000000);
            }
        _exit(0);
    }
    while (n < RECORDS) {
        while (sr_ring_next(&reader, &r, &payload) == SR_RING_RECORD) {
            uint64_t i;
            memcpy(&i, payload, sizeof i);
            wrong += i != n || r.number != n;
            n++;
            sr_ring_done(&reader);
        }
        sr_ring_tell(&reader);
    }
    waitpid(child, NULL, 0);
    is_int((long long)wrong, 0, "200,000 records from another process, which has to wait for room");
}

/* Whatever stands there: never a record that is not within the ring */
static void hostile(void)
{
    unsigned seed = 7, outside = 0, bad = 0;
    for (int round = 0; round < 200000; round++) {
        sr_record r;
        const char *payload;
        uint32_t at = (uint32_t)rand_r(&seed) & (SR_RING_BYTES - 1) & ~7u;
        if (round % 3)
            at &= 0xff8;
        sr_record evil = {.bytes = (uint32_t)rand_r(&seed) >> (rand_r(&seed) % 31),
                          .kind = (uint16_t)(rand_r(&seed) % 3)};
        size_t room = SR_RING_BYTES - at;
        memcpy(ring->data + at, &evil, room < sizeof evil ? room : sizeof evil);
        reader.taken = at;
        atomic_store(&ring->put, at + ((uint32_t)rand_r(&seed) >> (rand_r(&seed) % 31)));
        for (int n = 0; n < 100; n++) {
            sr_ring_result got = sr_ring_next(&reader, &r, &payload);
            bad += got == SR_RING_BAD;
            if (got != SR_RING_RECORD)
                break;
            size_t len = r.bytes - sizeof r;
            outside += payload < ring->data || payload + len > ring->data + SR_RING_BYTES;
            sr_ring_done(&reader);
        }
    }
    is_int(outside, 0, "no record of 200,000 hostile ones reaches outside");
    ok(bad > 1000, "%u were refused", bad);
    /* it moves put on each time that it was read: a ring of nothing but a PAD would never end */
    sr_record r, pad = {.bytes = SR_RING_BYTES};
    const char *payload;
    memcpy(ring->data, &pad, sizeof pad);
    atomic_store(&ring->put, SR_RING_BYTES);
    sr_reader_init(&reader, ring);
    is_int(sr_ring_next(&reader, &r, &payload), SR_RING_BAD, "a PAD as large as the ring is none");
}

int main(void)
{
    ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sr_reader_init(&reader, ring);
    in_order();
    around();
    two_processes();
    hostile();
    return done_testing();
}
