#ifdef SR_PORTABLE
#include "packets.h"

#include "descriptors.h"
#include "passing.h"
#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* For the rest of a message that has begun: the other process is at work on it, unless it was stopped */
enum { PATIENCE = 1000 /* ms */ };

int sr_packets_pair(int fds[2])
{
    return sr_sockets_pair(SOCK_STREAM, fds);
}

/* Whether to go on with a message that has begun, after this result of a call */
static bool goes_on(int end, ssize_t n, short event)
{
    struct pollfd one = {.fd = end, .events = event};
    if (n > 0 || (n < 0 && errno == EINTR))
        return true;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        return false;
    int ready;
    do
        ready = poll(&one, 1, PATIENCE);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

/* Nobody can tell where the next message begins */
static int lost(int end)
{
    shutdown(end, SHUT_RDWR);
    errno = EPIPE;
    return -1;
}

static bool send_rest(int end, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = send(end, at, len, MSG_NOSIGNAL);
        if (!goes_on(end, n, POLLOUT))
            return false;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

int sr_packets_send(int end, const void *at, size_t len, const int *fds, int n_fds)
{
    char first
        [1024]; /* the length and what there is room for: this much is sent whole or not at all (SO_SNDLOWAT) */
    uint32_t head = (uint32_t)len;
    size_t some = len < sizeof first - sizeof head ? len : sizeof first - sizeof head;
    memcpy(first, &head, sizeof head);
    memcpy(first + sizeof head, at, some);
    ssize_t n = sr_passing_send(end, first, sizeof head + some, fds, n_fds, 0);
    if (n < 0)
        return -1;
    size_t rest = sizeof head + some - (size_t)n;
    if (send_rest(end, first + n, rest) && send_rest(end, (const char *)at + some, len - some))
        return 0;
    return lost(end);
}

ssize_t sr_packets_receive(int end, void *at, size_t len, int *fds, int *n_fds)
{
    uint32_t head;
    char *to = at;
    ssize_t begun = sr_passing_receive(end, &head, sizeof head, fds, n_fds, NULL, 0);
    if (begun <= 0)
        return begun < 0 && errno == ECONNRESET ? 0 : begun;
    bool whole = begun == sizeof head;
    for (size_t got = 0; whole && got < head;) {
        char away[4096];
        size_t left = head - got, here = got < len ? len - got : 0;
        char *into = here ? to + got : away;
        size_t room = here ? here : sizeof away;
        ssize_t n = recv(end, into, left < room ? left : room, 0);
        whole = goes_on(end, n, POLLIN);
        got += n > 0 ? (size_t)n : 0;
    }
    if (whole)
        return (ssize_t)(head < len ? head : len);
    while (*n_fds > 0)
        sr_descriptors_discard(fds[--*n_fds]);
    lost(end);
    return 0;
}
#endif
