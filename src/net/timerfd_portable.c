#ifdef SR_PORTABLE
#include "lookout.h"
#include "timerfd.h"

#include <unistd.h>

int sr_timerfd_open(void)
{
    return sr_lookout_clock();
}

void sr_timerfd_set(int fd, int64_t at)
{
    char byte;
    while (read(fd, &byte, 1) == 1) /* as timerfd: what was due before is forgotten */
        ;
    sr_lookout_set(fd, at);
}

void sr_timerfd_heard(int fd)
{
    char byte;
    while (read(fd, &byte, 1) == 1)
        ;
}
#endif
