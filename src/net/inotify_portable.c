#ifdef SR_PORTABLE
#include "inotify.h"

#include <errno.h>

int sr_inotify_open(void)
{
    errno = ENOSYS;
    return -1;
}

int sr_inotify_add(int fd, const char *path, uint32_t events)
{
    (void)fd;
    (void)path;
    (void)events;
    errno = ENOSYS;
    return -1;
}

void sr_inotify_remove(int fd, int number)
{
    (void)fd;
    (void)number;
}
#endif
