#ifndef SR_LOOP_H
#define SR_LOOP_H
/*
 * loop: an epoll instance, level-triggered unless the events say EPOLLET, and the events that it has reported.
 * Owner: the caller. Failure: errno.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

/* The first member of everything that can be registered; an event points to it. */
typedef struct sr_source {
    int fd;       /* -1 when closed */
    uint8_t kind; /* an SR_SOURCE_ value of the owner */
} sr_source;

enum { SR_LOOP_EVENTS = 64 };

typedef struct sr_loop {
    int epoll;
    int next, n; /* of the batch, [next, n) is still to do */
    struct epoll_event batch[SR_LOOP_EVENTS];
} sr_loop;

int sr_loop_init(sr_loop *l); /* 0, or errno */
void sr_loop_free(sr_loop *l);

/* 0 or errno. The source must stay where it is until it is removed. */
int sr_loop_add(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_change(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_remove(sr_loop *l, sr_source *s); /* its events in the batch are dropped too: it may be freed */

/* Waits for a batch of events. Returns how many there are; 0: none came in this time, or a signal came first. */
int sr_loop_wait(sr_loop *l, int timeout_ms);

/* The next event of the batch; NULL: there is none left. */
static inline const struct epoll_event *sr_loop_next(sr_loop *l)
{
    while (l->next < l->n) {
        const struct epoll_event *ev = &l->batch[l->next++];
        if (ev->data.ptr)
            return ev;
    }
    return NULL;
}

#endif
