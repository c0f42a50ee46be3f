#include "pump.h"

#include "../net/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

sr_pump *sr_pump_new(sr_conn *c)
{
    sr_pump *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->source = (sr_source){.fd = -1, .kind = SR_SOURCE_PUMP};
    p->conn = c;
    return p;
}

int sr_pump_pair(sr_pump *p, int *theirs)
{
    int pair[2];
    if (sr_sockets_pair(SOCK_STREAM, pair) != 0)
        return errno;
    /*
     * sockets of a pair are two open files: that of the application may block, ours is read with MSG_DONTWAIT
     */
    p->source.fd = pair[0];
    *theirs = pair[1];
    return 0;
}

bool sr_pump_watch(sr_engine *e, sr_pump *p, uint32_t events)
{
    if (events == p->interest)
        return true;
    int err = !events       ? sr_loop_remove(&e->loop, &p->source)
              : p->interest ? sr_loop_change(&e->loop, &p->source, events)
                            : sr_loop_add(&e->loop, &p->source, events);
    if (!err)
        p->interest = events;
    return !err;
}

void sr_pump_still(sr_engine *e, sr_pump *p)
{
    if (!p->exchange && p->conn)
        sr_link_remove(&p->conn->buffered);
    sr_pump_watch(e, p, 0);
}

void sr_pump_free(sr_engine *e, sr_pump *p)
{
    if (!p)
        return;
    sr_pump_still(e, p);
    if (p->source.fd >= 0)
        close(p->source.fd);
    sr_buffer_free(&p->up);
    sr_buffer_free(&p->head);
    free(p);
}

int sr_pump_result(ssize_t n)
{
    return n >= 0 || errno == EINTR ? 0 : errno == EWOULDBLOCK ? EAGAIN : errno;
}

int sr_pump_push(sr_pump *p, size_t *n)
{
    size_t had = sr_buffer_len(&p->up);
    ssize_t sent = send(p->source.fd, sr_buffer_at(&p->up), had, MSG_DONTWAIT | MSG_NOSIGNAL);
    int err = sr_pump_result(sent);
    *n = sent > 0 ? (size_t)sent : 0;
    if (sent > 0)
        sr_buffer_take(&p->up, (size_t)sent);
    if (err == EPIPE) {
        sr_buffer_free(&p->up);
        *n = had;
        p->up_over = true;
        err = 0;
    }
    return err;
}

int sr_pump_take(sr_pump *p, char *to, ssize_t *n)
{
    *n = recv(p->source.fd, to, SR_PUMP_BYTES, MSG_DONTWAIT);
    if (*n < 0 && errno == ECONNRESET) /* closed, before it had read all */
        *n = 0;
    int err = sr_pump_result(*n);
    p->down_ends = *n == 0;
    p->spoken = p->spoken || *n > 0;
    return err;
}

bool sr_pump_closed(const sr_pump *p)
{
    return p->down_ends && send(p->source.fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EPIPE;
}
