#include "linger.h"

#include "deadline.h"
#include "send.h"

#include <errno.h>
#include <sys/socket.h>

enum { READS = 4 };

/*
 * Sends close_notify if the socket accepts it, then shuts down the sending side. False: the connection is
 * closed.
 */
static bool end_of_side(sr_engine *e, sr_conn *c)
{
    int err = c->ended ? 0 : sr_transport_end(c->transport, c->source.fd);
    c->ended = !err;
    if (err && err != EAGAIN)
        sr_conn_close(e, c, c->why);
    return !err || err == EAGAIN;
}

void sr_linger_read(sr_engine *e, sr_conn *c)
{
    if (!end_of_side(e, c))
        return;
    for (int i = 0; i < READS; i++) { /* past the transport: nobody reads what it would decrypt */
        ssize_t n = recv(c->source.fd, e->intake.scratch, SR_SCRATCH, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n <= 0) {
            sr_conn_close(e, c, c->why);
            return;
        }
    }
    sr_conn_watch(e, c, EPOLLIN);
}

void sr_linger(sr_engine *e, sr_conn *c, sr_closed why)
{
    c->why = why;
    sr_link_remove(&c->buffered);
    sr_conn_used(c, sr_buffer_len(&c->in));
    sr_exchange_end(e, c->exchange);
    if (!end_of_side(e, c))
        return;
    c->state = SR_CONN_LINGER;
    c->unacknowledged = sr_send_unacknowledged(c);
    sr_deadline_set(e, c, SR_DEADLINE_LINGER);
    sr_linger_read(e, c);
}
