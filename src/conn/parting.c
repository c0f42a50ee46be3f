#include "parting.h"

#include "../net/unsent.h"

#include <errno.h>
#include <sys/socket.h>

static sr_pump *pump_of(sr_link *l)
{
    return SR_LIST_ENTRY(l, sr_pump, parting);
}

/* All have the same limit, so the first of the list is the next. */
static void look_again(sr_engine *e)
{
    sr_link *list = &e->partings.list;
    e->partings.at = sr_link_alone(list) ? 0 : pump_of(list->next)->until;
}

static void wait_for_more(sr_engine *e, sr_pump *p)
{
    p->until = e->now + e->config.write_ns;
    p->unread = sr_unsent_bytes(p->source.fd);
    sr_link_append(&e->partings.list, &p->parting);
    look_again(e);
}

static void over(sr_engine *e, sr_pump *p)
{
    e->passing -= sr_buffer_len(&p->up);
    e->n_lent--;
    sr_link_remove(&p->parting);
    sr_pump_free(e, p);
    look_again(e);
}

void sr_partings_init(sr_engine *e)
{
    sr_link_init(&e->partings.list);
}

void sr_partings_free(sr_engine *e)
{
    while (!sr_link_alone(&e->partings.list))
        over(e, pump_of(e->partings.list.next));
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

void sr_partings_expire(sr_engine *e)
{
    while (e->partings.at && e->partings.at <= e->now) {
        sr_pump *p = pump_of(e->partings.list.next);
        if (sr_unsent_bytes(p->source.fd) < p->unread) /* it reads, if too little for the kernel to tell */
            wait_for_more(e, p);
        else
            over(e, p);
    }
}
