/*
 * In place of process_vm_readv: what is read from the other process is changed now and then, as a process
 * that is not to be trusted may change it at any moment. Ends this process if it asks for more than it can
 * have room for.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIECE_MAX = 400 * 1024, SEEN = 256 };

static uint64_t state = 88172645463325252;
static uint64_t seen[SEEN]; /* addresses there: what leads somewhere does more than what does not */
static unsigned count;

static uint64_t any(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static uint64_t value(void)
{
    static const uint64_t edges[] = {0,          UINT64_MAX, INT32_MAX,         (uint64_t)INT32_MAX + 1,
                                     UINT32_MAX, 1,          0x7fffffff7fffffff};
    switch (any() % 4) {
    case 0:
        return edges[any() % (sizeof edges / sizeof *edges)] - any() % 40;
    case 1:
        return any() >> any() % 64;
    default:
        return count ? seen[any() % (count < SEEN ? count : SEEN)] + 8 * (any() % 5) - 16 : any();
    }
}

static void change(const struct iovec *to)
{
    uint64_t new = value();
    size_t len = any() % 2 ? 4 : 8, words = to->iov_len / len;
    if (words)
        memcpy((char *)to->iov_base + any() % words * len, &new, len);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n, const struct iovec *from,
                         unsigned long m, unsigned long flags)
{
    const char *rate = getenv("HOSTILE"), *seed = getenv("SEED");
    if (!count++ && seed)
        state ^= strtoull(seed, NULL, 10) * 0x9e3779b97f4a7c15;
    for (unsigned long i = 0; i < n; i++) {
        if (to[i].iov_len > PIECE_MAX) {
            fprintf(stderr, "%zu bytes are asked for\n", to[i].iov_len);
            _exit(99);
        }
    }
    ssize_t got = syscall(SYS_process_vm_readv, pid, to, n, from, m, flags);
    if (got <= 0 || !rate)
        return got;
    for (unsigned long i = 0; i < n; i++) {
        uint64_t word = 0;
        memcpy(&word, to[i].iov_base, to[i].iov_len < sizeof word ? to[i].iov_len : sizeof word);
        if (word > 65536 && any() % 8 == 0)
            seen[count++ % SEEN] = word;
    }
    for (unsigned times = any() % 1000 < strtoul(rate, NULL, 10) ? 1 + any() % 3 : 0; times; times--)
        change(&to[any() % n]);
    return got;
}
