#ifndef SR_TIMERFD_H
#define SR_TIMERFD_H
/*
 * timerfd: a descriptor that becomes readable at a time of the monotonic clock (timerfd_create(2)). One
 * thread. The caller closes it.
 */
#include <stdint.h>

/* Makes one that is not set, close-on-exec. -1 with errno. */
int sr_timerfd_open(void);

/* Sets it, in ns, instead of what was set; 0: it is off. */
void sr_timerfd_set(int fd, int64_t at);

/* Takes note of it, so that it is readable no longer. May be called for one that is not. */
void sr_timerfd_heard(int fd);

#endif
