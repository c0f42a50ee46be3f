#ifndef SR_LOOKOUT_H
#define SR_LOOKOUT_H
/*
 * lookout: a thread of this process that looks at clocks and processes, for systems without a descriptor of
 * either (timerfd, pidfd). Only in portable builds (SR_PORTABLE). It notices the end of a process up to 10 ms
 * late. Any thread; a child that was forked has none of these.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A descriptor above 2, close-on-exec, which the caller closes, and which becomes readable when the process
 * ends. -1 with errno.
 */
int sr_lookout_process(pid_t pid);

/* Whether the process has ended: a look now. */
bool sr_lookout_ended(pid_t pid);

/* One that becomes readable at a time: sr_lookout_set. Does not block. -1 with errno. */
int sr_lookout_clock(void);

/* Sets the time, in ns of the monotonic clock; 0: none. */
void sr_lookout_set(int fd, int64_t at);

#endif
