#include "listener.h"

#include "engine.h"

#include <errno.h>

enum { LISTENERS_PAUSE_MS = 100 };

int sr_listeners_add(sr_engine *e, int fd, bool is_unix)
{
    if (e->listeners.n == SR_LISTENERS_MAX)
        return ENOSPC;
    e->listeners.at[e->listeners.n++] =
        (sr_listener){.source = {.fd = fd, .kind = SR_SOURCE_LISTENER}, .is_unix = is_unix};
    return 0;
}

/* EPOLLEXCLUSIVE: a new connection wakes one waiting edge, not all of them. */
static void watch(sr_engine *e, sr_listener *l, bool on)
{
    if (on && !l->registered)
        l->registered = sr_loop_add(&e->loop, &l->source, EPOLLIN | EPOLLEXCLUSIVE) == 0;
    if (on && !l->registered) /* ENOSPC (max_user_watches) or ENOMEM: tried again later */
        e->listeners.again = e->now + LISTENERS_PAUSE_MS * SR_MILLISECOND;
    else if (!on && l->registered)
        l->registered = sr_loop_remove(&e->loop, &l->source) != 0;
}

void sr_listeners_watch(sr_engine *e, bool on)
{
    for (unsigned i = 0; i < e->listeners.n; i++)
        watch(e, &e->listeners.at[i], on && !e->listeners.again && !e->listeners.at[i].over);
    e->listeners.watched = on;
}

/* EPOLLEXCLUSIVE has woken only this edge, so it tells the others to look. */
void sr_listeners_pause(sr_engine *e)
{
    sr_counters_add(&e->row->counters.paused, 1);
    if (e->stuck)
        e->stuck(e->with);
    e->listeners.again = e->now + LISTENERS_PAUSE_MS * SR_MILLISECOND;
    sr_listeners_watch(e, e->listeners.watched);
}
