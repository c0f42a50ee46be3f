#ifdef SR_PORTABLE
#include "lease.h"

#include <errno.h>
#include <fcntl.h>
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
    /* with an access control list the bits of the group are what the list allows anybody but the owner at most */
    return self == 0 || st.st_uid == self || st.st_mode & (S_IWOTH | S_IWGRP);
}

int sr_lease_take(int fd, pid_t holder, int signal)
{
    (void)fd;
    (void)holder;
    (void)signal;
    errno = ENOSYS;
    return -1;
}

bool sr_lease_claim(int fd, int signal)
{
    (void)fd;
    (void)signal;
    return false;
}

bool sr_lease_holds(int fd)
{
    (void)fd;
    return false;
}

sr_lease_return sr_lease_give_back(int fd)
{
    (void)fd;
    return SR_LEASE_UNKNOWN;
}

unsigned sr_lease_patience(void)
{
    return PATIENCE;
}
#endif
