#ifdef SR_PORTABLE
#include "gate.h"

#include <errno.h>

int sr_gate_shut(int fd)
{
    (void)fd;
    return ENOSYS;
}
#endif
