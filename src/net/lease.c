#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_SETLEASE */
#endif
#include "lease.h"

#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE = 45 };

bool sr_lease_needed(int fd)
{
    struct stat st;
    uid_t self = geteuid();
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) != O_RDONLY || fstat(fd, &st) != 0)
        return true;
    /*
     * with an access control list the bits of the group are what the list allows anybody but the owner at
     * most
     */
    return self == 0 || st.st_uid == self || st.st_mode & (S_IWOTH | S_IWGRP);
}

unsigned sr_lease_patience(void)
{
    char text[16] = "", *end = text;
    int fd = open("/proc/sys/fs/lease-break-time", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return PATIENCE;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    unsigned long seconds = n > 0 ? strtoul(text, &end, 10) : 0;
    return end == text || seconds > INT32_MAX ? PATIENCE : (unsigned)seconds;
}

#ifndef SR_PORTABLE
static bool tells(int fd, pid_t holder, int signal)
{
    return fcntl(fd, F_SETSIG, signal) == 0 && fcntl(fd, F_SETOWN, holder) == 0;
}

int sr_lease_take(int fd, pid_t holder, int signal)
{
    /* not a duplicate: the lease would be that of the caller's own open file, which may stay open for ever */
    char path[sizeof "/proc/self/fd/" + 10];
    if (holder <= 0) {
        errno = ESRCH;
        return -1;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int leased = sr_descriptors_above(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (leased < 0)
        return -1;
    /* the signal first: SIGIO, which is the default, would end a process */
    if (tells(leased, holder, signal) && fcntl(leased, F_SETLEASE, F_RDLCK) == 0)
        return leased;
    return sr_descriptors_failed(leased);
}

bool sr_lease_claim(int fd, int signal)
{
    /* who is told is decided by the rights of the one who has said it: so this process says it once more */
    return tells(fd, getpid(), signal) && sr_lease_holds(fd);
}

bool sr_lease_holds(int fd)
{
    return fcntl(fd, F_GETLEASE) == F_RDLCK;
}

sr_lease_return sr_lease_give_back(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_UNLCK) == 0)
        return SR_LEASE_RETURNED;
    return errno == EAGAIN ? SR_LEASE_LOST : SR_LEASE_UNKNOWN;
}
#endif
