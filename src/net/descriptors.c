#include "descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { UNKNOWN = 1024 }; /* what the kernel starts with */

uint64_t sr_descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return UNKNOWN;
    struct rlimit wanted = {limit.rlim_max, limit.rlim_max};
    if (limit.rlim_cur < limit.rlim_max && setrlimit(RLIMIT_NOFILE, &wanted) == 0)
        limit = wanted;
    return limit.rlim_cur;
}

int sr_descriptors_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return UNKNOWN;
    return limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur : INT_MAX;
}

int sr_descriptors_lowest(int open)
{
    int fd = fcntl(open, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0)
        return sr_descriptors_limit();
    close(fd);
    return fd;
}

void sr_descriptors_discard(int fd)
{
    struct linger l = {0};
    socklen_t len = sizeof l;
    bool waits = getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &len) == 0 && l.l_onoff && l.l_linger;
    if (waits)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){0}, sizeof l);
    close(fd);
}

int sr_descriptors_above(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return above;
}
