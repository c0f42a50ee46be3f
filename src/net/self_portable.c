#ifdef SR_PORTABLE
#include "descriptors.h"
#include "self.h"

#include <stddef.h>
#include <unistd.h>
#ifdef __FreeBSD__
#include <sys/procctl.h>
#include <sys/wait.h>
#endif

enum { MOST = 65536 }; /* a limit may be a million: as many calls would take a second */

void sr_self_name(const char *name)
{
    (void)name;
}

void sr_self_readable(bool readable)
{
    (void)readable;
}

int sr_self_nameless(void)
{
    return 0;
}

bool sr_self_adopt(void)
{
#ifdef __FreeBSD__
    return procctl(P_PID, 0, PROC_REAP_ACQUIRE, NULL) == 0;
#else
    return false;
#endif
}

void sr_self_ends_with_parent(bool ends)
{
    (void)ends;
}

void sr_self_close(int first, int last)
{
    int limit = sr_descriptors_limit();
    for (int fd = first; fd <= last && fd < limit && fd < MOST; fd++)
        close(fd);
}
#endif
