#ifndef SR_LOOP_H
#define SR_LOOP_H
/*
 * loop: an epoll instance, level-triggered, and an eventfd that wakes it.
 *
 * Level-triggered, because then an event that one thread has taken and dropped is reported again: the
 * companion and the Perl thread can both wait without handing events to each other. Owner: the engine. Lock:
 * add, change, remove and wait are safe from any thread by the kernel; sr_loop_wake is async-signal-safe.
 * Failure: errno of the system call.
 */
#include <stdbool.h>
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
    sr_source wake; /* eventfd; kind SR_SOURCE_WAKE = 0 */
} sr_loop;

int sr_loop_init(sr_loop *l); /* 0, or errno */
void sr_loop_free(sr_loop *l);

int sr_loop_add(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_change(sr_loop *l, sr_source *s, uint32_t events);
int sr_loop_remove(sr_loop *l, sr_source *s);

/* As epoll_wait with SR_LOOP_EVENTS events. -1 with errno EINTR when a signal came. */
int sr_loop_wait(sr_loop *l, struct epoll_event *events, int timeout_ms);

void sr_loop_wake(sr_loop *l);
void sr_loop_woken(sr_loop *l); /* takes the wake-up: after an event whose source is l->wake */

#endif
