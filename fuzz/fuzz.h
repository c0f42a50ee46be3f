#ifndef FUZZ_H
#define FUZZ_H
/*
 * fuzz: what the targets share. A target is one file with one FUZZ_TARGET; it takes any bytes, and aborts
 * when what came out is not what the headers of src/ promise. dev/fuzz builds each with libFuzzer;
 * xt/c/fuzz_replay.c includes them all and replays fuzz/NAME.corpus.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef FUZZ_TARGET
#define FUZZ_TARGET(name) int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
#endif

/* An assertion that stays whatever the flags are. */
#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                          \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* A copy of its own, so that the sanitizer sees a read after its end. The caller frees it. */
static inline char *fuzz_copy(const void *at, size_t len)
{
    char *copy = malloc(len ? len : 1);
    MUST(copy);
    if (len)
        memcpy(copy, at, len);
    return copy;
}

/* How many descriptors are open. */
static inline int fuzz_descriptors(void)
{
    struct pollfd all[512];
    int n = 0;
    for (int fd = 0; fd < 512; fd++)
        all[fd] = (struct pollfd){.fd = fd};
    MUST(poll(all, 512, 0) >= 0);
    for (int fd = 0; fd < 512; fd++)
        n += !(all[fd].revents & POLLNVAL);
    return n;
}

/*
 * The same, when there are no more than that: a thread of a portable build closes some a moment later
 * (net/lookout.h).
 */
static inline int fuzz_descriptors_again(int before)
{
    for (int i = 0; i < 2000 && fuzz_descriptors() > before; i++)
        usleep(1000);
    return fuzz_descriptors();
}

/* Numbers that depend on the input alone: xorshift64*. */
typedef struct fuzz_random {
    uint64_t state;
} fuzz_random;

static inline uint64_t fuzz_hash(uint64_t hash, const void *at, size_t len) /* FNV-1a */
{
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ ((const uint8_t *)at)[i]) * 1099511628211u;
    return hash;
}

static inline fuzz_random fuzz_random_of(const uint8_t *data, size_t size, uint64_t more)
{
    return (fuzz_random){fuzz_hash(14695981039346656037u + more, data, size) | 1};
}

static inline size_t fuzz_below(fuzz_random *r, size_t n) /* n > 0 */
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return (size_t)((r->state * 2685821657736338717u) >> 33) % n;
}

#endif
