#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "pidfd.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

int sr_pidfd_open(pid_t pid)
{
#ifdef SYS_pidfd_open /* glibc has no function for it before 2.36 */
    return (int)syscall(SYS_pidfd_open, pid, 0);
#else
    (void)pid;
    errno = ENOSYS;
    return -1;
#endif
}
