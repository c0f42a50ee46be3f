#ifndef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4, pipe2, sendmmsg */
#endif
#include "sockets.h"

#include <fcntl.h>
#include <unistd.h>

int sr_sockets_unix(int type)
{
    return socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int sr_sockets_accept(int listener, struct sockaddr *from, socklen_t *len)
{
    return accept4(listener, from, len, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int sr_sockets_pair(int type, int fds[2])
{
    return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds);
}

int sr_sockets_pipe(int fds[2])
{
    return pipe2(fds, O_CLOEXEC);
}

void sr_sockets_readable_at(int fd, size_t bytes)
{
    (void)fd;
    (void)bytes;
}

int sr_sockets_send(int fd, const struct msghdr *messages, unsigned n, int flags)
{
    struct mmsghdr all[16] = {0};
    for (unsigned i = 0; i < n; i++)
        all[i].msg_hdr = messages[i];
    return sendmmsg(fd, all, n, flags);
}
#endif
