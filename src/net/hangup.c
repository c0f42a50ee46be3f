#ifndef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "hangup.h"

short sr_hangup(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    poll(&p, 1, 0);
    return p.revents;
}
#endif
