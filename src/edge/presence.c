#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "presence.h"

#include "../net/hangup.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#ifndef TCP_KEEPIDLE /* macOS */
#define TCP_KEEPIDLE TCP_KEEPALIVE
#endif

enum {
    PROBE_S = 5, /* seconds between two questions of the kernel, and how many without an answer are the end */
    PROBES = 3,
};

/* As below, where a byte of the request itself is still to be read. */
static int peer_behind(const sr_conn *c)
{
    short now = sr_hangup(c->source.fd);
    return !now ? 0 : now & (POLLERR | POLLNVAL) ? -1 : 1;
}

int sr_presence(const sr_conn *c)
{
    if (c->held)
        return peer_behind(c);
    ssize_t n = sr_transport_peek(c->transport, c->source.fd);
    if (n == 0)
        return 1;
    return n > 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

bool sr_presence_lost(const sr_conn *c)
{
    return c->gone || sr_hangup(c->source.fd) & (POLLERR | POLLHUP | POLLNVAL);
}

void sr_presence_probe(sr_edge *ed, sr_conn *c)
{
    /*
     * no bytes that would tell are sent to a client which has ended its side: the kernel asks whether it
     * still reads
     */
    static const struct {
        int level, name, value;
    } ask[] = {
        {IPPROTO_TCP, TCP_KEEPIDLE, PROBE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S},
        {IPPROTO_TCP, TCP_KEEPCNT, PROBES},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
    };
    if (c->out || c->borrowed || c->state == SR_CONN_STREAMS)
        return;
    /* not by a look at what has come: it may have left a next request behind, or its close_notify */
    short now = sr_hangup(c->source.fd);
    if (now & (POLLERR | POLLHUP) || sr_presence(c) < 0) {
        sr_conn_close(ed->engine, c, SR_CLOSED_CLIENT);
        return;
    }
    for (size_t i = 0; now & POLLRDHUP && i < sizeof ask / sizeof ask[0]; i++)
        setsockopt(c->source.fd, ask[i].level, ask[i].name, &ask[i].value, sizeof ask[i].value);
}
