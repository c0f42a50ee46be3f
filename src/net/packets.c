#ifndef SR_PORTABLE
#include "packets.h"

#include "passing.h"
#include "sockets.h"

#include <errno.h>

int sr_packets_pair(int fds[2])
{
    return sr_sockets_pair(SOCK_SEQPACKET, fds);
}

int sr_packets_send(int end, const void *at, size_t len, const int *fds, int n_fds)
{
    return sr_passing_send(end, at, len, fds, n_fds, 0) < 0 ? -1 : 0;
}

ssize_t sr_packets_receive(int end, void *at, size_t len, int *fds, int *n_fds)
{
    int room = *n_fds;
    ssize_t n;
    do {
        *n_fds = room;
        n = sr_passing_receive(end, at, len, fds, n_fds, NULL, 0);
        /*
         * ECONNRESET, once: the other end was closed and had not read all. What it had written is still there
         */
    } while (n < 0 && errno == ECONNRESET);
    return n;
}
#endif
