#ifndef SR_SEQUENCE_H
#define SR_SEQUENCE_H
/*
 * sequence: a sequence lock for values of more than one word, which one process writes and any reads. The
 * number is odd while the value is being written. A reader copies the value between two looks at the number,
 * and tries again unless it was even and the same.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    SR_SEQUENCE_TRIES = 100
}; /* of a reader: a value is written in 20 ns, unless the writer loses its CPU meanwhile */

/* From here to sr_sequence_end readers see that the value is being written. */
static inline uint32_t sr_sequence_begin(_Atomic uint32_t *at)
{
    /* odd already: the previous writer was killed here */
    uint32_t sequence = atomic_load_explicit(at, memory_order_relaxed) | 1;
    atomic_store_explicit(at, sequence, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    return sequence;
}

static inline void sr_sequence_end(_Atomic uint32_t *at, uint32_t sequence)
{
    atomic_store_explicit(at, sequence + 1, memory_order_release);
}

static inline uint32_t sr_sequence_look(const _Atomic uint32_t *at)
{
    return atomic_load_explicit(at, memory_order_acquire);
}

/* Whether what was read since sr_sequence_look is whole. */
static inline int sr_sequence_holds(const _Atomic uint32_t *at, uint32_t sequence)
{
    atomic_thread_fence(memory_order_acquire);
    return !(sequence & 1) && atomic_load_explicit(at, memory_order_relaxed) == sequence;
}

/* Copies whole words, so it reads up to 7 bytes beyond the end. */
static inline void sr_sequence_write(_Atomic uint64_t *to, const void *from, size_t len)
{
    for (size_t i = 0; i * sizeof(uint64_t) < len; i++) {
        uint64_t word;
        memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
        atomic_store_explicit(&to[i], word, memory_order_relaxed);
    }
}

/* Likewise, it writes up to 7 bytes beyond the end. */
static inline void sr_sequence_read(void *to, const _Atomic uint64_t *from, size_t len)
{
    for (size_t i = 0; i * sizeof(uint64_t) < len; i++) {
        uint64_t word = atomic_load_explicit(&from[i], memory_order_relaxed);
        memcpy((char *)to + i * sizeof word, &word, sizeof word);
    }
}

#endif
