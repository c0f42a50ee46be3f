#ifndef SR_PORTABLE
#include "bell.h"

#include <sys/eventfd.h>

int sr_bell_new(void)
{
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}
#endif
