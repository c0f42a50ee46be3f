#ifndef SR_PORTABLE
#include "timerfd.h"

#include "../base/clock.h"

#include <sys/timerfd.h>
#include <unistd.h>

int sr_timerfd_open(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
}

void sr_timerfd_set(int fd, int64_t at)
{
    struct itimerspec when = {.it_value = {.tv_sec = at / SR_SECOND, .tv_nsec = at % SR_SECOND}};
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL);
}

void sr_timerfd_heard(int fd)
{
    uint64_t times;
    ssize_t n = read(fd, &times, sizeof times);
    (void)n; /* EAGAIN: it was set again */
}
#endif
