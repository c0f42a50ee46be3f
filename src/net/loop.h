#ifndef SR_LOOP_H
#define SR_LOOP_H
/*
 * loop: an epoll instance, level-triggered unless the events say EPOLLET, and the events that it has
 * reported.
 * Owner: the caller. Failure: errno.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef SR_PORTABLE
/* The names of epoll, whose values only this file and loop_portable.c know. */
enum {
    EPOLLIN = 0x001,
    EPOLLOUT = 0x004,
    EPOLLERR = 0x008,
    EPOLLHUP = 0x010,
    EPOLLRDHUP = 0x2000,
    EPOLLEXCLUSIVE = 1 << 28, /* not kept: all edges are woken */
};
#define EPOLLET (1U << 31) /* not kept: the source is reported until its bytes are read */
struct epoll_event {
    uint32_t events;
    union {
        void *ptr;
    } data;
};
struct sr_loop_table;
#else
#include <sys/epoll.h>
#endif

/* The first member of everything that can be registered; an event points to it. */
typedef struct sr_source {
    int fd;       /* -1 when closed */
    uint8_t kind; /* an SR_SOURCE_ value of the owner */
} sr_source;

enum { SR_LOOP_EVENTS = 64 };

typedef struct sr_loop {
    int epoll; /* of a portable build: any descriptor */
#ifdef SR_PORTABLE
    struct sr_loop_table *table;
#endif
    int next, n; /* of the batch, [next, n) is still to do */
    struct epoll_event batch[SR_LOOP_EVENTS];
} sr_loop;

int sr_loop_init(sr_loop *l); /* 0, or errno */
void sr_loop_free(sr_loop *l);

/* 0 or errno. The source must stay where it is until it is removed. */
int sr_loop_add(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_change(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_remove(sr_loop *l, sr_source *s); /* its events in the batch are dropped too: it may be freed */

/*
 * Waits for a batch of events. Returns how many there are; 0: none came in this time, or a signal came first.
 */
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
