#ifdef SR_PORTABLE
#include "futex.h"

#include "../base/clock.h"

#include <time.h>

#define FIRST_NS (SR_MILLISECOND / 20)
#define LONG_NS (10 * SR_MILLISECOND)

/*
 * How long to sleep after `slept`: a worker that was busy just now is looked for soon, an idle one needs no
 * processor.
 */
static int64_t pause_of(int64_t slept)
{
    return slept < SR_MILLISECOND ? FIRST_NS : slept < SR_SECOND / 4 ? SR_MILLISECOND : LONG_NS;
}

bool sr_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t ns)
{
    int64_t began = sr_clock_monotonic(), slept = 0;
    while (atomic_load(word) == value) {
        int64_t next = pause_of(slept);
        if (ns >= 0 && slept >= ns)
            return false;
        if (ns >= 0 && next > ns - slept)
            next = ns - slept;
        if (nanosleep(&(struct timespec){.tv_sec = next / SR_SECOND, .tv_nsec = next % SR_SECOND}, NULL) != 0)
            return true; /* a signal */
        slept = sr_clock_monotonic() - began;
    }
    return true;
}
#endif
