#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "ring.h"

#include "futex.h"
#include "memory.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { KIND_PAD = 0, MASK = SR_RING_BYTES - 1 };

_Static_assert((SR_RING_BYTES & MASK) == 0, "positions are taken modulo the size");
_Static_assert(sizeof(sr_record) % 8 == 0, "a header never lies across the end");

static uint32_t rounded(size_t bytes)
{
    return (uint32_t)((bytes + 7) & ~(size_t)7);
}

/* --- its memory --- */

sr_ring *sr_ring_new(int *fd)
{
    void *at = sr_memory_new("sirius-ring", sizeof(sr_ring), fd);
    if (at)
        sr_memory_seal(*fd, false);
    return at;
}

sr_ring *sr_ring_map(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return NULL;
    if (st.st_size != (off_t)sizeof(sr_ring)) {
        errno = EPROTO;
        return NULL;
    }
    void *at = mmap(NULL, sizeof(sr_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

void sr_ring_unmap(sr_ring *r)
{
    if (r)
        munmap(r, sizeof *r);
}

/* --- the writer --- */

sr_record *sr_ring_reserve(sr_ring *r, size_t payload)
{
    uint32_t need = rounded(sizeof(sr_record) + payload);
    uint32_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
    uint32_t free = SR_RING_BYTES - (put - atomic_load_explicit(&r->taken, memory_order_acquire));
    uint32_t at = put & MASK, end = SR_RING_BYTES - at;
    if (need > SR_RECORD_MAX || free > SR_RING_BYTES)
        return NULL;
    if (end < need) { /* pads the rest, and begins at the start */
        if (free < end + need)
            return NULL;
        sr_record pad = {.bytes = end, .kind = KIND_PAD};
        memcpy(r->data + at, &pad, end < sizeof pad ? end : sizeof pad);
        atomic_store_explicit(&r->put, put + end, memory_order_release);
        at = 0;
    } else if (free < need) {
        return NULL;
    }
    return (sr_record *)(void *)(r->data + at);
}

void sr_ring_commit(sr_ring *r, sr_record *record, size_t payload)
{
    record->bytes = (uint32_t)(sizeof *record + payload);
    uint32_t put = atomic_load_explicit(&r->put, memory_order_relaxed);
    atomic_store_explicit(&r->put, put + rounded(record->bytes), memory_order_release);
}

uint32_t sr_ring_want(sr_ring *r)
{
    uint32_t seen = atomic_load(&r->space);
    atomic_store(&r->wants, 1);
    return seen;
}

void sr_ring_wait(sr_ring *r, uint32_t seen, int64_t ns)
{
    sr_futex_wait(&r->space, seen, ns);
}

uint32_t sr_ring_waiting(const sr_ring *r)
{
    return atomic_load_explicit(&r->put, memory_order_relaxed) -
           atomic_load_explicit(&r->taken, memory_order_acquire);
}

/* --- the reader --- */

void sr_reader_init(sr_reader *r, sr_ring *ring)
{
    *r = (sr_reader){.ring = ring};
}

sr_ring_result sr_ring_next(sr_reader *r, sr_record *record, const char **payload)
{
    for (;;) {
        uint32_t here = atomic_load_explicit(&r->ring->put, memory_order_acquire) - r->taken;
        uint32_t at = r->taken & MASK, end = SR_RING_BYTES - at;
        if (!here)
            return SR_RING_NONE;
        if (here > SR_RING_BYTES || here % 8)
            return SR_RING_BAD;
        if (end < sizeof *record) { /* no header fits here: this can only be a PAD */
            r->size = end;
        } else {
            memcpy(record, r->ring->data + at, sizeof *record);
            if (record->bytes < sizeof *record && record->kind != KIND_PAD)
                return SR_RING_BAD;
            r->size = rounded(record->bytes);
            if (record->bytes > SR_RECORD_MAX || r->size > here || r->size > end || !r->size)
                return SR_RING_BAD;
            if (record->kind != KIND_PAD) {
                *payload = r->ring->data + at + sizeof *record;
                return SR_RING_RECORD;
            }
        }
        if (r->size != end || r->size > here)
            return SR_RING_BAD;
        sr_ring_done(r);
    }
}

bool sr_reader_waits(const sr_reader *r)
{
    return atomic_load_explicit(&r->ring->put, memory_order_acquire) != r->taken;
}

void sr_ring_done(sr_reader *r)
{
    r->taken += r->size;
    atomic_store_explicit(&r->ring->taken, r->taken, memory_order_release);
}

void sr_ring_tell(sr_reader *r)
{
    atomic_thread_fence(memory_order_seq_cst); /* publish what was taken, then see who waits for room */
    if (!atomic_load_explicit(&r->ring->wants, memory_order_relaxed) || !atomic_exchange(&r->ring->wants, 0))
        return;
    atomic_fetch_add(&r->ring->space, 1);
    sr_futex_wake(&r->ring->space);
}
