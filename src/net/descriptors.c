#include "descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    UNKNOWN = 1024, /* what the kernel starts with */
    HIGH = 1024,    /* more than applications have open; the kernel needs 16 KiB for such a table */
};

int sr_descriptors_failed(int fd)
{
    int err = errno;
    if (fd >= 0)
        close(fd);
    errno = err;
    return -1;
}

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

int sr_descriptors_high(int fd)
{
    int limit = sr_descriptors_limit();
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, limit > HIGH + HIGH / 2 ? HIGH : limit / 4 * 3);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

uint64_t sr_descriptors_what(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 ? ((uint64_t)st.st_dev << 48 ^ (uint64_t)st.st_ino) | UINT64_C(1) << 63 : 0;
}
