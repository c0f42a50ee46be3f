#ifndef SR_TURN_H
#define SR_TURN_H
/*
 * turn: what the requests of one connection in SR_CONN_STREAMS have in common while they wait for workers.
 * edge/turns.c decides.
 *
 * Owner: the connection, once it has had a request, and each entry of one of its requests, also after the
 * connection is closed: a worker may still be busy for it.
 */
#include "../base/list.h"

#include <stdint.h>
#include <stdlib.h>

typedef struct sr_turn {
    sr_link link; /* in sr_turning.line, or alone */
    sr_link
        waiting; /* entries of its requests that are not in the queue, in the order in which they get there */
    uint32_t owners;
    uint32_t given;    /* requests in the queue or with a worker */
    uint32_t slot;     /* of the request that was given last */
    uint64_t number;   /* of that request */
    int64_t at;        /* when it was given, monotonic ns */
    int64_t placed_at; /* when one of them got a place in a lane last, monotonic ns; 0: none did */
} sr_turn;

static inline void sr_turn_drop(sr_turn *t)
{
    if (t && !--t->owners)
        free(t);
}

#endif
