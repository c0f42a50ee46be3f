#ifdef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "packets.h"

#include "descriptors.h"
#include "hangup.h"
#include "passing.h"
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#ifdef __linux__
#include <linux/sockios.h>
#endif

typedef uint32_t length; /* stands before each message */

/* Of a socket, so that the largest message has room: macOS gives 8 KiB. */
enum { BUFFER = SR_PACKETS_MAX * 3 / 2 };

int sr_packets_pair(int fds[2])
{
    int bytes = BUFFER;
    if (sr_sockets_pair(SOCK_STREAM, fds) != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
        setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    }
    return 0;
}

static bool waits(int end)
{
    return !(fcntl(end, F_GETFL) & O_NONBLOCK);
}

/* Nobody can tell where the next message begins. */
static void lost(int end)
{
    shutdown(end, SHUT_RDWR);
    errno = EPIPE;
}

/*
 * Whether all of it can be sent at once. Where the kernel knows low-water marks of unix sockets, it sends all
 * or nothing from now on.
 */
static bool has_room(int end, size_t bytes)
{
#ifdef __linux__
    int sent = 0, most = 0;
    socklen_t len = sizeof most;
    return ioctl(end, SIOCOUTQ, &sent) == 0 && getsockopt(end, SOL_SOCKET, SO_SNDBUF, &most, &len) == 0 &&
           (size_t)sent + bytes + bytes / 4 + 8192 <= (size_t)most; /* as pages: more than its bytes */
#else
    int least = (int)bytes;
    return setsockopt(end, SOL_SOCKET, SO_SNDLOWAT, &least, sizeof least) == 0;
#endif
}

static bool send_all(int end, const char *at, size_t len, const int *fds, int n_fds)
{
    ssize_t n = sr_passing_send(end, at, len, fds, n_fds, 0);
    if (n < 0)
        return false;
    for (size_t sent = (size_t)n; sent < len; sent += (size_t)n)
        if ((n = sr_passing_send(end, at + sent, len - sent, NULL, 0, 0)) < 0) {
            lost(end);
            return false;
        }
    return true;
}

int sr_packets_send(int end, const void *at, size_t len, const int *fds, int n_fds)
{
    length head = (length)len;
    char *all = NULL;
    if (len > SR_PACKETS_MAX)
        errno = EMSGSIZE;
    else if (!waits(end) && !has_room(end, sizeof head + len))
        errno = EAGAIN;
    else
        all = malloc(sizeof head + len);
    if (!all)
        return -1;
    memcpy(all, &head, sizeof head);
    memcpy(all + sizeof head, at, len);
    bool sent = send_all(end, all, sizeof head + len, fds, n_fds);
    int err = errno;
    free(all);
    errno = err;
    return sent ? 0 : -1;
}

/* Of an end that does not wait. 1: the next message is there, whole; 0: none will come; -1: EAGAIN. */
static int is_whole(int end)
{
    length head = 0;
    int there = 0;
    ssize_t n = recv(end, &head, sizeof head, MSG_PEEK);
    if (n <= 0)
        return n < 0 && errno != ECONNRESET ? -1 : 0;
    if (n == sizeof head && head <= SR_PACKETS_MAX && ioctl(end, FIONREAD, &there) == 0 &&
        (size_t)there >= sizeof head + head) {
        sr_sockets_readable_at(end, 1);
        return 1;
    }
    if (head > SR_PACKETS_MAX || sr_hangup(end)) {
        lost(end);
        return 0;
    }
    sr_sockets_readable_at(end, sizeof head + head);
    errno = EAGAIN;
    return -1;
}

/*
 * The bytes of a message that has begun; those for which there is no room are lost. False: the line has ended
 * before.
 */
static bool receive_rest(int end, char *at, size_t room, size_t len)
{
    for (size_t got = 0; got < len;) {
        char away[4096];
        size_t left = len - got, here = got < room ? room - got : 0;
        size_t most = here ? here : sizeof away;
        ssize_t n = recv(end, here ? at + got : away, left < most ? left : most, 0);
        if (n > 0)
            got += (size_t)n;
        else if (n == 0 || errno != EINTR)
            return false;
    }
    return true;
}

ssize_t sr_packets_receive(int end, void *at, size_t len, int *fds, int *n_fds)
{
    length head = 0;
    int whole = waits(end) ? 1 : is_whole(end), room = *n_fds;
    *n_fds = 0;
    if (whole <= 0)
        return whole;
    *n_fds = room;
    ssize_t n = sr_passing_receive(end, &head, sizeof head, fds, n_fds, NULL, 0);
    if (n <= 0)
        return n < 0 && errno != ECONNRESET ? n : 0;
    if (n == sizeof head && head <= SR_PACKETS_MAX && receive_rest(end, at, len, head))
        return (ssize_t)(head < len ? head : len);
    while (*n_fds > 0)
        sr_descriptors_discard(fds[--*n_fds]);
    lost(end);
    return 0;
}
#endif
