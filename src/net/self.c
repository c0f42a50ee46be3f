#ifndef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "self.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void sr_self_name(const char *name)
{
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

void sr_self_readable(bool readable)
{
    prctl(PR_SET_DUMPABLE, readable, 0, 0, 0);
}

int sr_self_nameless(void)
{
    char now[16];
    if (prctl(PR_GET_NAME, now, 0, 0, 0) == 0 && prctl(PR_SET_NAME, now, 0, 0, 0) == 0)
        return 0;
    return errno;
}

bool sr_self_adopt(void)
{
    return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0; /* since Linux 3.4 */
}

void sr_self_ends_with_parent(bool ends)
{
    prctl(PR_SET_PDEATHSIG, ends ? SIGKILL : 0, 0, 0, 0);
}

/* For Linux before 5.9: descriptors stay open. Those that perl has opened are close-on-exec. */
void sr_self_close(int first, int last)
{
#ifdef SYS_close_range
    if (first <= last)
        syscall(SYS_close_range, (unsigned)first, (unsigned)last, 0);
#else
    (void)first;
    (void)last;
#endif
}
#endif
