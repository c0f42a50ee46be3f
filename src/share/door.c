#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "door.h"

#include "../net/descriptors.h"
#include "../net/passing.h"
#include "../net/sockets.h"
#include "lobby.h"
#include "queue.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    BACKLOG = 4096, /* as many as there can be workers; the kernel caps it (net.core.somaxconn) */
};

int sr_door_lobby(int *fd)
{
    *fd = sr_descriptors_above(sr_sockets_unix(SR_LOBBY_TYPE));
    if (*fd < 0)
        return errno;
    if (sr_lobby_bind(*fd) == 0 && listen(*fd, BACKLOG) == 0)
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
    if (getsockname(lobby, (struct sockaddr *)&at, &len) != 0)
        return 0;
    uint64_t name = sr_lobby_name(&at, len);
    if (!name)
        errno = EINVAL;
    return name;
}

int sr_door_enter(uint64_t name, int *line)
{
    struct sockaddr_un at;
    socklen_t len = sr_lobby_address(name, &at);
    int fd = sr_descriptors_above(sr_sockets_unix(SR_LOBBY_TYPE));
    if (fd < 0)
        return errno;
    /* at this end too, so that a note sent before the other side has accepted also carries its sender */
    int err = sr_lobby_name_senders(fd);
    if (!err && connect(fd, (struct sockaddr *)&at, len) != 0)
        err = errno;
    if (err)
        close(fd);
    else
        *line = fd;
    return err;
}

int sr_door_admit(int lobby, int *line)
{
    int fd = sr_sockets_accept(lobby, NULL, NULL);
    if (fd < 0)
        return errno == EINTR || errno == EWOULDBLOCK ? EAGAIN : errno;
    int err = sr_lobby_name_senders(fd);
    if (err)
        close(fd);
    else
        *line = fd;
    return err;
}

bool sr_door_stranger(int line)
{
    uid_t user;
    return !sr_lobby_user(line, &user) || (user != geteuid() && user != 0);
}

int sr_door_pair(int fds[2])
{
    return sr_sockets_pair(SR_LOBBY_TYPE, fds) == 0 ? 0 : errno;
}

/* Whether to try again: if the caller wants to wait, after waiting for space or for a note. */
static bool again(int line, short events, bool wait)
{
    if (!wait || (errno != EAGAIN && errno != EWOULDBLOCK))
        return false;
    struct pollfd p = {.fd = line, .events = events};
    return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

int sr_door_send(int line, sr_message *note, const int *fds, int n_fds, bool wait)
{
    ssize_t n;
    note->layout = SR_QUEUE_LAYOUT;
    note->pid = SR_LOBBY_SENDERS ? 0 : getpid();
    do
        n = sr_passing_send(line, note, sizeof *note, fds, n_fds, wait ? 0 : MSG_DONTWAIT);
    while (n < 0 && again(line, POLLOUT, wait));
    return n == (ssize_t)sizeof *note ? 0 : n < 0 ? errno : EIO;
}

int sr_door_receive(int line, sr_message *note, int *fds, int *n_fds, bool wait)
{
    ssize_t n;
    int32_t pid;
    do {
        *n_fds = SR_MESSAGE_FDS;
        /* MSG_TRUNC: how long it is, if it is too long */
        n = sr_passing_receive(line, note, sizeof *note, fds, n_fds, &pid,
                               MSG_TRUNC | (wait ? 0 : MSG_DONTWAIT));
    } while (n < 0 && again(line, POLLIN, wait));
    if (n < 0)
        return errno;
    if (SR_LOBBY_SENDERS)
        note->pid = pid;
    if (n == (ssize_t)sizeof *note && note->layout == SR_QUEUE_LAYOUT)
        return 0;
    while (*n_fds > 0)
        sr_descriptors_discard(fds[--*n_fds]);
    /* a note without bytes has a sender; the end of the connection has none */
    return n == 0 && !(SR_LOBBY_SENDERS && pid) ? EPIPE : EPROTO;
}
