#ifndef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include "needed.h"

#include "pidfd.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

static int try_accept(void)
{
    return accept4(-1, NULL, NULL, 0);
}

static int try_connect(void)
{
    struct sockaddr nowhere = {.sa_family =
                                   AF_UNSPEC}; /* qemu-user reads it before it looks at the descriptor */
    return connect(-1, &nowhere, sizeof nowhere);
}

static int try_epoll(void)
{
    struct epoll_event event;
    return epoll_wait(-1, &event, 1, 0);
}

static int try_pidfd(void)
{
    int fd = sr_pidfd_open(getpid());
    if (fd < 0)
        return fd;
    close(fd);
    errno = EBADF; /* as the others */
    return -1;
}

static int try_recvfrom(void)
{
    char byte;
    return (int)recv(-1, &byte, 1, MSG_DONTWAIT);
}

static int try_recvmsg(void)
{
    struct msghdr none = {0};
    return (int)recvmsg(-1, &none, MSG_DONTWAIT);
}

/* The number of the supervisor; a number of descriptors that is negative is no number. */
static int try_select(void)
{
    int n = select(-1, NULL, NULL, NULL, NULL);
    if (errno == EINVAL)
        errno = EBADF;
    return n;
}

static int try_sendmsg(void)
{
    struct msghdr none = {0};
    return (int)sendmsg(-1, &none, MSG_NOSIGNAL);
}

static int try_sendto(void)
{
    return (int)send(-1, "", 1, MSG_NOSIGNAL);
}

static int try_setsockopt(void)
{
    int on = 1;
    return setsockopt(-1, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

const char *sr_needed_missing(int *err)
{
    static const struct {
        const char *name;
        int (*try)(void);
    } calls[] = {
        {"pidfd_open", try_pidfd},      {"accept4", try_accept}, {"connect", try_connect},
        {"epoll_wait", try_epoll},      {"select", try_select},  {"recvfrom", try_recvfrom},
        {"recvmsg", try_recvmsg},       {"sendto", try_sendto},  {"sendmsg", try_sendmsg},
        {"setsockopt", try_setsockopt},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].try() < 0 && errno != EBADF) {
            *err = errno;
            return calls[i].name;
        }
    return NULL;
}
#endif
