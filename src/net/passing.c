#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred */
#endif
#include "passing.h"

#include "descriptors.h"
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#ifdef SR_PORTABLE
enum { SENDER = 0 };
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif

/* No other system says it in the same way. */
static int32_t sender(const struct cmsghdr *h)
{
    (void)h;
    return 0;
}
#else
enum { SENDER = CMSG_SPACE(sizeof(struct ucred)) };

/* 0: this is something else. */
static int32_t sender(const struct cmsghdr *h)
{
    struct ucred from;
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_CREDENTIALS)
        return 0;
    memcpy(&from, CMSG_DATA(h), sizeof from);
    return from.pid;
}
#endif

typedef union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(SR_PASSING_MAX * sizeof(int)) + SENDER];
} control;

ssize_t sr_passing_send(int socket, const void *at, size_t len, const int *fds, int n_fds, int flags)
{
    control c;
    size_t bytes = (size_t)n_fds * sizeof *fds;
    struct iovec iov = {(void *)(uintptr_t)at, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds > 0) {
        msg.msg_control = c.space;
        msg.msg_controllen = CMSG_SPACE(bytes);
        memset(&c, 0, msg.msg_controllen);
        struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
        *h = (struct cmsghdr){.cmsg_len = CMSG_LEN(bytes), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(h), fds, bytes);
    }
    ssize_t n;
    do
        n = sendmsg(socket, &msg, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    return n;
}

/*
 * Moves the descriptors of a control message to `fds`. Once one cannot be moved above 2, those after it are
 * closed.
 */
static int take(const struct cmsghdr *h, int *fds, int n, int room)
{
    size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
        if (!MSG_CMSG_CLOEXEC)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
        if (n < room && (fd = sr_descriptors_above(fd)) >= 0)
            fds[n++] = fd;
        else if (fd >= 0)
            sr_descriptors_discard(fd);
        else
            room = n;
    }
    return n;
}

ssize_t sr_passing_receive(int socket, void *at, size_t len, int *fds, int *n_fds, int32_t *pid, int flags)
{
    control c;
    struct iovec iov = {at, len};
    int room = *n_fds < SR_PASSING_MAX ? *n_fds : SR_PASSING_MAX;
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = c.space,
                         .msg_controllen = (socklen_t)(CMSG_SPACE((size_t)room * sizeof(int)) + SENDER)};
    ssize_t n;
    do
        n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | flags);
    while (n < 0 && errno == EINTR);
    *n_fds = 0;
    if (pid)
        *pid = 0;
    for (struct cmsghdr *h = n < 0 ? NULL : CMSG_FIRSTHDR(&msg); h; h = CMSG_NXTHDR(&msg, h)) {
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
            *n_fds = take(h, fds, *n_fds, room);
        else if (pid && sender(h))
            *pid = sender(h);
    }
    return n;
}
