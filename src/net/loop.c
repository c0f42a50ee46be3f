#ifndef SR_PORTABLE
#include "loop.h"

#include "descriptors.h"

#include <errno.h>
#include <unistd.h>

int sr_loop_init(sr_loop *l)
{
    l->epoll = sr_descriptors_above(epoll_create1(EPOLL_CLOEXEC));
    l->next = l->n = 0;
    return l->epoll < 0 ? errno : 0;
}

void sr_loop_free(sr_loop *l)
{
    if (l->epoll >= 0)
        close(l->epoll);
    l->epoll = -1;
}

static int control(sr_loop *l, int op, sr_source *s, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data = {.ptr = s}};
    return epoll_ctl(l->epoll, op, s->fd, &ev) == 0 ? 0 : errno;
}

int sr_loop_add(sr_loop *l, sr_source *s, uint32_t events)
{
    return control(l, EPOLL_CTL_ADD, s, events);
}
int sr_loop_change(sr_loop *l, sr_source *s, uint32_t events)
{
    return control(l, EPOLL_CTL_MOD, s, events);
}
int sr_loop_remove(sr_loop *l, sr_source *s)
{
    for (int i = l->next; i < l->n; i++)
        if (l->batch[i].data.ptr == s)
            l->batch[i].data.ptr = NULL;
    return control(l, EPOLL_CTL_DEL, s, 0);
}

int sr_loop_wait(sr_loop *l, int timeout_ms)
{
    int n = epoll_wait(l->epoll, l->batch, SR_LOOP_EVENTS, timeout_ms);
    l->next = 0;
    return l->n = n < 0 ? 0 : n;
}
#endif
