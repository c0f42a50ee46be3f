#ifdef SR_PORTABLE
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

/* Between the two calls another thread may fork: a program that it starts has this descriptor too. */
static int private(int fd, bool waits)
{
    if (fd < 0)
        return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, waits ? fcntl(fd, F_GETFL) & ~O_NONBLOCK : fcntl(fd, F_GETFL) | O_NONBLOCK);
#ifdef SO_NOSIGPIPE
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int)); /* fails for a pipe */
#endif
    return fd;
}

int sr_sockets_unix(int type)
{
    return private(socket(AF_UNIX, type, 0), false);
}

int sr_sockets_accept(int listener, struct sockaddr *from, socklen_t *len)
{
    return private(accept(listener, from, len), false);
}

int sr_sockets_pair(int type, int fds[2])
{
    if (socketpair(AF_UNIX, type, 0, fds) != 0)
        return -1;
    private(fds[0], true);
    private(fds[1], true);
    return 0;
}

int sr_sockets_pipe(int fds[2])
{
    if (pipe(fds) != 0)
        return -1;
    private(fds[0], true);
    private(fds[1], true);
    return 0;
}

void sr_sockets_readable_at(int fd, size_t bytes)
{
    int n = (int)bytes;
    setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof n);
}

int sr_sockets_send(int fd, const struct msghdr *messages, unsigned n, int flags)
{
    unsigned sent = 0;
    while (sent < n && sendmsg(fd, &messages[sent], flags) >= 0)
        sent++;
    return sent ? (int)sent : -1;
}
#endif
