#ifdef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "hangup.h"

#include <sys/socket.h>

short sr_hangup(int fd)
{
    struct pollfd p = {.fd = fd, .events = SR_HANGUP_BY_POLL ? POLLRDHUP : POLLIN};
    poll(&p, 1, 0);
    if (SR_HANGUP_BY_POLL || !(p.revents & POLLIN))
        return p.revents;
    return (short)((p.revents & ~POLLIN) | (sr_hangup_peek(fd) ? POLLRDHUP : 0));
}

bool sr_hangup_peek(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
#endif
