#ifndef SR_LOOP_H
#define SR_LOOP_H
/*
 * loop: an epoll instance, level-triggered unless the events say EPOLLET. Owner: the engine. Failure: errno.
 */
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
} sr_loop;

int sr_loop_init(sr_loop *l); /* 0, or errno */
void sr_loop_free(sr_loop *l);

/* 0 or errno. The source must stay where it is until it is removed. */
int sr_loop_add(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_change(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_remove(sr_loop *l, sr_source *s);

/* As epoll_wait with room for SR_LOOP_EVENTS events. Returns -1 with EINTR when a signal came. */
int sr_loop_wait(sr_loop *l, struct epoll_event *events, int timeout_ms);

#endif
