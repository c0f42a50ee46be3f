#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "door.h"

#include "../net/descriptors.h"
#include "queue.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 4096, /* as many as there can be workers; the kernel caps it (net.core.somaxconn) */
    NAME_AT = offsetof(struct sockaddr_un, sun_path) + 1,
};

typedef union control {
    struct cmsghdr align;
    char space[CMSG_SPACE(SR_MESSAGE_FDS * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
} control;

int sr_door_lobby(int *fd)
{
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    *fd = sr_descriptors_above(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (*fd < 0)
        return errno;
    /* without a name: the kernel chooses one (unix(7), autobind) */
    if (bind(*fd, (struct sockaddr *)&any, sizeof any.sun_family) == 0 && listen(*fd, BACKLOG) == 0)
        return 0;
    int err = errno;
    close(*fd);
    *fd = -1;
    return err;
}

uint64_t sr_door_name(int lobby)
{
    struct sockaddr_un at;
    socklen_t len = sizeof at;
    uint64_t name = 0;
    if (getsockname(lobby, (struct sockaddr *)&at, &len) != 0)
        return 0;
    size_t bytes = len > NAME_AT ? len - NAME_AT : 0;
    if (at.sun_family != AF_UNIX || !bytes || bytes > sizeof name) {
        errno = EINVAL;
        return 0;
    }
    memcpy(&name, at.sun_path + 1, bytes);
    return name;
}

/* From now on the kernel reports the sender of each note. */
static int name_senders(int line)
{
    int on = 1;
    return setsockopt(line, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 ? 0 : errno;
}

int sr_door_enter(uint64_t name, int *line)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    char text[sizeof name + 1] = {0};
    memcpy(text, &name, sizeof name);
    size_t bytes = strlen(text);
    memcpy(at.sun_path + 1, text, bytes);
    int fd = sr_descriptors_above(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0)
        return errno;
    /* at this end too, so that a note sent before the other side has accepted also carries its sender */
    int err = name_senders(fd);
    if (!err && connect(fd, (struct sockaddr *)&at, (socklen_t)(NAME_AT + bytes)) != 0)
        err = errno;
    if (err)
        close(fd);
    else
        *line = fd;
    return err;
}

int sr_door_admit(int lobby, int *line)
{
    int fd = accept4(lobby, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return errno == EINTR || errno == EWOULDBLOCK ? EAGAIN : errno;
    int err = name_senders(fd);
    if (err)
        close(fd);
    else
        *line = fd;
    return err;
}

bool sr_door_stranger(int line)
{
    struct ucred peer;
    socklen_t len = sizeof peer;
    bool known = getsockopt(line, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0;
    return !known || (peer.uid != geteuid() && peer.uid != 0);
}

int sr_door_pair(int fds[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0 ? 0 : errno;
}

/*
 * Whether to try again: always after an interruption; if the caller wants to wait, after waiting for space or
 * for a note.
 */
static bool again(int line, short events, bool wait)
{
    if (errno == EINTR)
        return true;
    if (!wait || (errno != EAGAIN && errno != EWOULDBLOCK))
        return false;
    struct pollfd p = {.fd = line, .events = events};
    return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

int sr_door_send(int line, sr_message *note, const int *fds, int n_fds, bool wait)
{
    control c;
    struct iovec iov = {note, sizeof *note};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    note->layout = SR_QUEUE_LAYOUT;
    if (n_fds > 0) {
        memset(&c, 0, sizeof c);
        msg.msg_control = c.space;
        msg.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
        struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
        *h = (struct cmsghdr){.cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int)),
                              .cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(h), fds, (size_t)n_fds * sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(line, &msg, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
    while (n < 0 && again(line, POLLOUT, wait));
    return n == (ssize_t)sizeof *note ? 0 : n < 0 ? errno : EIO;
}

/* Takes the descriptors and the sender's PID from a message. Closes descriptors beyond SR_MESSAGE_FDS. */
static int received(struct msghdr *msg, int *fds, int32_t *pid)
{
    int n = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h)) {
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_CREDENTIALS) {
            struct ucred from;
            memcpy(&from, CMSG_DATA(h), sizeof from);
            *pid = from.pid;
        }
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
            if (n < SR_MESSAGE_FDS && (fd = sr_descriptors_above(fd)) >= 0)
                fds[n++] = fd;
            else if (fd >= 0)
                sr_descriptors_discard(fd);
        }
    }
    return n;
}

int sr_door_receive(int line, sr_message *note, int *fds, int *n_fds, bool wait)
{
    control c;
    struct iovec iov = {note, sizeof *note};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.space, .msg_controllen = sizeof c.space};
    ssize_t n;
    *n_fds = 0;
    do
        n = recvmsg(line, &msg, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
    while (n < 0 && again(line, POLLIN, wait));
    if (n < 0)
        return errno;
    int32_t pid = 0;
    *n_fds = received(&msg, fds, &pid);
    note->pid = pid;
    if (n == (ssize_t)sizeof *note && note->layout == SR_QUEUE_LAYOUT && !(msg.msg_flags & MSG_TRUNC))
        return 0;
    while (*n_fds > 0)
        sr_descriptors_discard(fds[--*n_fds]);
    /* a note without bytes has a sender; the end of the connection has none */
    return n == 0 && !pid ? EPIPE : EPROTO;
}
