#include "pump.h"

#include "../net/descriptors.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int sr_pump_new(sr_conn *c, int *theirs)
{
    int pair[2];
    sr_pump *p = calloc(1, sizeof *p);
    if (!p)
        return ENOMEM;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        int err = errno;
        free(p);
        return err;
    }
    /* sockets of a pair are two open files: that of the application may block, ours is read with MSG_DONTWAIT */
    p->source = (sr_source){.fd = pair[0], .kind = SR_SOURCE_PUMP};
    p->conn = c;
    c->pump = p;
    *theirs = pair[1];
    return 0;
}

void sr_pump_still(sr_engine *e, sr_conn *c)
{
    sr_pump *p = c->pump;
    sr_link_remove(&c->buffered);
    if (p->interest)
        sr_loop_remove(&e->loop, &p->source);
    p->interest = 0;
}

void sr_pump_free(sr_engine *e, sr_conn *c)
{
    sr_pump *p = c->pump;
    if (!p)
        return;
    sr_pump_still(e, c);
    close(p->source.fd);
    sr_buffer_free(&p->up);
    free(p);
    c->pump = NULL;
}
