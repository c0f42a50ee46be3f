#ifdef SR_PORTABLE
#include "lease.h"

#include <errno.h>

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
#endif
