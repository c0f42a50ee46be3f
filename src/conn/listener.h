#ifndef SR_LISTENER_H
#define SR_LISTENER_H
/*
 * listener: the sockets that connections come from, and whether they are watched. Failure: a socket that
 * cannot be watched is tried again after 100 ms.
 */
#include "../net/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct sr_engine;

enum { SR_LISTENERS_MAX = 64 };

typedef struct sr_listener {
    sr_source source; /* kind SR_SOURCE_LISTENER; the descriptor is not closed here */
    bool registered;  /* in the epoll set */
    bool is_unix;
    bool is_tls;
    bool is_h2c; /* HTTP/2 may begin without TLS (RFC 9113 3.3) */
    bool over;   /* shut down: nobody can connect, but it stays readable for ever */
} sr_listener;

typedef struct sr_listeners {
    sr_listener at[SR_LISTENERS_MAX];
    unsigned n;
    bool watched;  /* they are in the epoll set */
    int64_t again; /* monotonic ns until which they are left out, for lack of descriptors; 0: not */
} sr_listeners;

/* Adds a listening, non-blocking socket, which stays the caller's. Returns 0 or errno (ENOSPC: too many). */
int sr_listeners_add(struct sr_engine *e, int fd, bool is_unix);

void sr_listeners_watch(struct sr_engine *e,
                        bool on);             /* puts the listeners into the epoll set, or takes them out */
void sr_listeners_pause(struct sr_engine *e); /* leaves them alone for 100 ms: accept can't succeed now */

#endif
