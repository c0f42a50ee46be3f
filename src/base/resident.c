#ifndef SR_PORTABLE
#include "resident.h"

#include <fcntl.h>
#include <unistd.h>

void sr_resident_open(sr_resident *r)
{
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    /* the application may have closed these descriptors, and opened others under their numbers */
    if (fd >= 0 && fd <= STDERR_FILENO) {
        int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        close(fd);
        fd = above;
    }
    *r = (sr_resident){.fd = fd, .page = (uint64_t)sysconf(_SC_PAGESIZE)};
}

void sr_resident_close(sr_resident *r)
{
    if (r->fd >= 0)
        close(r->fd);
    r->fd = -1;
}

uint64_t sr_resident_bytes(const sr_resident *r)
{
    char text[128]; /* "size resident shared ...", in pages */
    ssize_t n = r->fd < 0 ? -1 : pread(r->fd, text, sizeof text, 0), i = 0;
    uint64_t pages = 0;
    while (i < n && text[i] != ' ')
        i++;
    while (++i < n && text[i] >= '0' && text[i] <= '9')
        pages = pages * 10 + (uint64_t)(text[i] - '0');
    return pages * r->page;
}
#endif
