#ifndef SR_PIDFD_H
#define SR_PIDFD_H
/*
 * pidfd: a descriptor that stands for one process (pidfd_open(2), Linux 5.3). It becomes readable when that
 * process ends, and keeps meaning that process after its number was given to another one. Any thread.
 */
#include <stdbool.h>
#include <sys/types.h>

/*
 * Opens a descriptor of the process `pid`, close-on-exec, which the caller closes. Returns -1 with errno:
 * ESRCH when there is no such process, ENOSYS where the kernel is older.
 */
int sr_pidfd_open(pid_t pid);

/* Whether that process has ended, now. `pid`: the same. */
bool sr_pidfd_ended(int fd, pid_t pid);

#endif
