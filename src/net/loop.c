#include "loop.h"

#include "descriptors.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

int sr_loop_init(sr_loop *l)
{
    *l = (sr_loop){.epoll = -1, .wake = {.fd = -1}};
    l->epoll = sr_descriptors_above(epoll_create1(EPOLL_CLOEXEC));
    l->wake.fd = sr_descriptors_above(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    int err = l->epoll < 0 || l->wake.fd < 0 ? errno : sr_loop_add(l, &l->wake, EPOLLIN);
    if (err)
        sr_loop_free(l);
    return err;
}

void sr_loop_free(sr_loop *l)
{
    if (l->wake.fd >= 0)
        close(l->wake.fd);
    if (l->epoll >= 0)
        close(l->epoll);
    *l = (sr_loop){.epoll = -1, .wake = {.fd = -1}};
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
    return control(l, EPOLL_CTL_DEL, s, 0);
}

int sr_loop_wait(sr_loop *l, struct epoll_event *events, int timeout_ms)
{
    return epoll_wait(l->epoll, events, SR_LOOP_EVENTS, timeout_ms);
}

void sr_loop_wake(sr_loop *l)
{
    int saved = errno; /* it is called from signal handlers */
    uint64_t one = 1;
    ssize_t n = write(l->wake.fd, &one, sizeof one);
    (void)n; /* EAGAIN: the counter is full, so it is awake already */
    errno = saved;
}

void sr_loop_woken(sr_loop *l)
{
    uint64_t count;
    ssize_t n = read(l->wake.fd, &count, sizeof count);
    (void)n;
}
