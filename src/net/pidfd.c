#ifndef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "pidfd.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* missing in headers before Linux 5.3; the number is the same on all architectures but alpha */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

int sr_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0); /* glibc has no wrapper before 2.36 */
}

bool sr_pidfd_ended(int fd, pid_t pid)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    (void)pid;
    return poll(&p, 1, 0) > 0;
}
#endif
