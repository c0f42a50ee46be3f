#ifdef SR_PORTABLE
#include "lookout.h"
#include "pidfd.h"

int sr_pidfd_open(pid_t pid)
{
    return sr_lookout_process(pid);
}

bool sr_pidfd_ended(int fd, pid_t pid)
{
    (void)fd; /* which may tell it 10 ms later */
    return sr_lookout_ended(pid);
}
#endif
