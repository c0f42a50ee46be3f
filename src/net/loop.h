#ifndef SR_LOOP_H
#define SR_LOOP_H
/*
 * loop: an epoll instance, level-triggered. Owner: the engine. Failure: errno of the system call.
 */
#include <stdint.h>
#include <sys/epoll.h>

/* First member of all that can be registered: what an event points to. */
typedef struct sr_source {
    int fd;       /* -1 when closed */
    uint8_t kind; /* the owner's enum */
} sr_source;

enum { SR_LOOP_EVENTS = 64 };

typedef struct sr_loop {
    int epoll;
} sr_loop;

int sr_loop_init(sr_loop *l); /* 0, or errno */
void sr_loop_free(sr_loop *l);

int sr_loop_add(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_change(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_remove(sr_loop *l, sr_source *s);

/* As epoll_wait with SR_LOOP_EVENTS events. -1 with errno EINTR when a signal came. */
int sr_loop_wait(sr_loop *l, struct epoll_event *events, int timeout_ms);

#endif
