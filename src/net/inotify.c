#ifndef SR_PORTABLE
#include "inotify.h"

#include "descriptors.h"

#include <sys/inotify.h>

int sr_inotify_open(void)
{
    return sr_descriptors_above(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
}

int sr_inotify_add(int fd, const char *path, uint32_t events)
{
    return inotify_add_watch(fd, path, events);
}

void sr_inotify_remove(int fd, int number)
{
    inotify_rm_watch(fd, number);
}
#endif
