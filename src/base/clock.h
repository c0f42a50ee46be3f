#ifndef SR_CLOCK_H
#define SR_CLOCK_H
/*
 * clock: time in nanoseconds, without a system call on Linux (vDSO) where nothing else is said. Any thread.
 */
#include <stdint.h>
#include <time.h>

/* Where the system has no clock that is cheaper. */
#ifndef CLOCK_MONOTONIC_COARSE
#define CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC
#endif
#ifndef CLOCK_REALTIME_COARSE
#define CLOCK_REALTIME_COARSE CLOCK_REALTIME
#endif

#define SR_SECOND INT64_C(1000000000)
#define SR_MILLISECOND INT64_C(1000000)

/* Monotonic, for time limits and durations. All processes of the machine have the same clock. */
static inline int64_t sr_clock_monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SR_SECOND + t.tv_nsec;
}

/* The same in seconds, up to 4 ms late, for a fifth of the instructions. */
static inline int64_t sr_clock_monotonic_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec;
}

/*
 * That the calling thread has run, for limits that other processes of the machine do not use up. By a system
 * call, 0.2 us.
 */
static inline int64_t sr_clock_thread_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * SR_SECOND + t.tv_nsec;
}

/* Nanoseconds since 1970. */
static inline int64_t sr_clock_wall(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * SR_SECOND + t.tv_nsec;
}

/* Seconds since 1970, up to 4 ms late, for the Date field. */
static inline int64_t sr_clock_wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return t.tv_sec;
}

#endif
