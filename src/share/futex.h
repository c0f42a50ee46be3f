#ifndef SR_FUTEX_H
#define SR_FUTEX_H
/*
 * futex: sleep on a word of shared memory, and be woken by another process (futex(2), without FUTEX_PRIVATE).
 *
 * Thread, process: any. Failure: none that matters. A sleep may end early, so callers check again.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#ifdef SR_PORTABLE
/*
 * As below, but the sleeper itself looks at the word: after 50 us at first, each millisecond then, and each
 * 10 ms when it has slept for a quarter of a second.
 */
bool sr_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns);

static inline void sr_futex_wake(_Atomic uint32_t *word)
{
    (void)word;
}
#else
#include <linux/futex.h>
#include <sys/syscall.h>

/*
 * Sleeps while *word is `value`, for at most ns; below 0: for ever. Returns early when woken, or at a signal.
 * False: all of that time has passed.
 */
static inline bool sr_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
    struct timespec limit = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    return syscall(SYS_futex, word, FUTEX_WAIT, value, ns < 0 ? NULL : &limit, NULL, 0) == 0 ||
           errno != ETIMEDOUT;
}

/* Wakes one sleeper. Keeps errno; async-signal-safe. */
static inline void sr_futex_wake(_Atomic uint32_t *word)
{
    int saved = errno;
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
    errno = saved;
}
#endif

#endif
