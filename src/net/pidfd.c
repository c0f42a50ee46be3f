#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "pidfd.h"

#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open /* headers before Linux 5.3; the same number on all architectures but alpha */
#define SYS_pidfd_open 434
#endif

int sr_pidfd_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0); /* glibc has no function for it before 2.36 */
}
