#ifdef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP */
#endif
#include "loop.h"

#include "descriptors.h"
#include "hangup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

enum { PEEK_MS = 100 }; /* between two looks for the end of a socket, where poll(2) does not say it */

/* All that is registered, in no order. poll(2) takes `fds` as it is. */
struct sr_loop_table {
    struct pollfd *fds;
    sr_source **sources;
    uint32_t *events;
    int n, room;
    int *place; /* by descriptor: its index, or -1 */
    int n_place;
    int from;    /* where the next batch begins, so that each has its turn */
    int peeking; /* how many are watched for the end of their peer only */
};

int sr_loop_init(sr_loop *l)
{
    l->next = l->n = 0;
    l->table = NULL;
    l->epoll = sr_descriptors_above(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (l->epoll < 0)
        return errno;
    if ((l->table = calloc(1, sizeof *l->table)))
        return 0;
    close(l->epoll);
    l->epoll = -1;
    return ENOMEM;
}

void sr_loop_free(sr_loop *l)
{
    if (l->epoll >= 0)
        close(l->epoll);
    l->epoll = -1;
    if (!l->table)
        return;
    free(l->table->fds);
    free(l->table->sources);
    free(l->table->events);
    free(l->table->place);
    free(l->table);
    l->table = NULL;
}

static bool grow(struct sr_loop_table *t, int fd)
{
    if (t->n == t->room) {
        int room = t->room ? 2 * t->room : 64;
        void *fds = realloc(t->fds, (size_t)room * sizeof *t->fds);
        t->fds = fds ? fds : t->fds;
        void *sources = fds ? realloc(t->sources, (size_t)room * sizeof *t->sources) : NULL;
        t->sources = sources ? sources : t->sources;
        void *events = sources ? realloc(t->events, (size_t)room * sizeof *t->events) : NULL;
        if (!events)
            return false;
        t->events = events;
        t->room = room;
    }
    if (fd >= t->n_place) {
        int n = fd + 64;
        int *place = realloc(t->place, (size_t)n * sizeof *place);
        if (!place)
            return false;
        for (int i = t->n_place; i < n; i++)
            place[i] = -1;
        t->place = place;
        t->n_place = n;
    }
    return true;
}

/* Where poll(2) has no POLLRDHUP, the end of a peer is looked for while nothing else is read. */
static bool peeks(uint32_t events)
{
    return !SR_HANGUP_BY_POLL && events & EPOLLRDHUP && !(events & EPOLLIN);
}

static void put(struct sr_loop_table *t, int i, uint32_t events)
{
    t->peeking += peeks(events) - peeks(t->events[i]);
    t->events[i] = events;
    t->fds[i].events = (short)((events & EPOLLIN ? POLLIN : 0) | (events & EPOLLOUT ? POLLOUT : 0) |
                               (SR_HANGUP_BY_POLL && events & EPOLLRDHUP ? POLLRDHUP : 0));
}

static int place_of(const struct sr_loop_table *t, int fd)
{
    return fd >= 0 && fd < t->n_place ? t->place[fd] : -1;
}

static void drop(struct sr_loop_table *t, int i)
{
    put(t, i, 0);
    t->place[t->fds[i].fd] = -1;
    if (i != --t->n) {
        t->fds[i] = t->fds[t->n];
        t->sources[i] = t->sources[t->n];
        t->events[i] = t->events[t->n];
        t->place[t->fds[i].fd] = i;
    }
}

int sr_loop_add(sr_loop *l, sr_source *s, uint32_t events)
{
    struct sr_loop_table *t = l->table;
    int i = place_of(t, s->fd);
    if (s->fd < 0)
        return EBADF;
    if (i >= 0 && t->sources[i] == s)
        return EEXIST;
    if (i < 0) {
        if (!grow(t, s->fd))
            return ENOMEM;
        i = t->n++;
        t->events[i] = 0;
        t->fds[i] = (struct pollfd){.fd = s->fd};
        t->place[s->fd] = i;
    }
    t->sources[i] = s;
    put(t, i, events);
    return 0;
}

int sr_loop_change(sr_loop *l, sr_source *s, uint32_t events)
{
    int i = place_of(l->table, s->fd);
    if (i < 0 || l->table->sources[i] != s)
        return s->fd < 0 ? EBADF : ENOENT;
    put(l->table, i, events);
    return 0;
}

int sr_loop_remove(sr_loop *l, sr_source *s)
{
    for (int i = l->next; i < l->n; i++)
        if (l->batch[i].data.ptr == s)
            l->batch[i].data.ptr = NULL;
    int i = place_of(l->table, s->fd);
    if (i < 0 || l->table->sources[i] != s)
        return s->fd < 0 ? EBADF : ENOENT;
    drop(l->table, i);
    return 0;
}

/* The events of this one, in the words of epoll. */
static uint32_t events_of(const struct sr_loop_table *t, int i)
{
    short now = t->fds[i].revents;
    /* On macOS: the peer has ended its side, and what it has sent is still to be read */
    if (!SR_HANGUP_BY_POLL && now & POLLIN)
        now = (short)(now & ~POLLHUP);
    uint32_t events = (now & POLLIN ? EPOLLIN : 0u) | (now & POLLOUT ? EPOLLOUT : 0u) |
                      (now & POLLERR ? EPOLLERR : 0u) | (now & POLLHUP ? EPOLLHUP : 0u);
    bool ended = SR_HANGUP_BY_POLL ? now & POLLRDHUP
                                   : t->events[i] & EPOLLRDHUP && (peeks(t->events[i]) || now & POLLIN) &&
                                         sr_hangup_peek(t->fds[i].fd);
    return events | (ended ? EPOLLRDHUP : 0u);
}

int sr_loop_wait(sr_loop *l, int timeout_ms)
{
    struct sr_loop_table *t = l->table;
    if (t->peeking && (timeout_ms < 0 || timeout_ms > PEEK_MS))
        timeout_ms = PEEK_MS;
    int ready = poll(t->fds, (nfds_t)t->n, timeout_ms), n = 0;
    l->next = l->n = 0;
    if (ready < 0 || (!ready && !t->peeking))
        return 0;
    int from = t->n ? t->from % t->n : 0;
    for (int k = 0; k < t->n && n < SR_LOOP_EVENTS; k++) {
        int i = (from + k) % t->n;
        uint32_t events = events_of(t, i);
        if (!events)
            continue;
        l->batch[n++] = (struct epoll_event){.events = events, .data = {.ptr = t->sources[i]}};
        t->from = i + 1;
    }
    return l->n = n;
}
#endif
