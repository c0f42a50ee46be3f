#include "parting.h"

#include "../net/unsent.h"

#include <errno.h>
#include <sys/socket.h>

static sr_pump *pump_of(sr_link *l)
{
    return SR_LIST_ENTRY(l, sr_pump, parting);
}

static void wait_for_more(sr_engine *e, sr_pump *p)
{
    p->until = e->now + e->config.write_ns;
    p->unread = sr_unsent_bytes(p->source.fd);
    sr_link_append(&e->partings, &p->parting);
}

static void over(sr_engine *e, sr_pump *p)
{
    e->passing -= sr_buffer_len(&p->up);
    e->n_lent--;
    sr_link_remove(&p->parting);
    sr_pump_free(e, p);
}

void sr_partings_free(sr_engine *e)
{
    while (!sr_link_alone(&e->partings))
        over(e, pump_of(e->partings.next));
}

void sr_parting_begin(sr_engine *e, sr_pump *p)
{
    p->conn = NULL;
    p->exchange = NULL;
    sr_link_init(&p->parting);
    shutdown(p->source.fd, SHUT_RD);
    wait_for_more(e, p);
    if (!sr_pump_watch(e, p, EPOLLOUT))
        over(e, p);
}

void sr_parting_step(sr_engine *e, sr_pump *p)
{
    size_t n;
    int err = sr_pump_push(p, &n);
    e->passing -= n;
    if ((err && err != EAGAIN) || !sr_buffer_len(&p->up))
        over(e, p);
    else if (n)
        wait_for_more(e, p);
}

int64_t sr_partings_at(const sr_engine *e)
{
    return sr_link_alone(&e->partings) ? INT64_MAX : pump_of(e->partings.next)->until;
}

void sr_partings_expire(sr_engine *e)
{
    while (sr_partings_at(e) <= e->now) {
        sr_pump *p = pump_of(e->partings.next);
        if (sr_unsent_bytes(p->source.fd) < p->unread) /* it reads, if too little for the kernel to tell */
            wait_for_more(e, p);
        else
            over(e, p);
    }
}
