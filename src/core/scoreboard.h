#ifndef SR_SCOREBOARD_H
#define SR_SCOREBOARD_H
/*
 * scoreboard: shared memory in which each worker says what it does. Made by the supervisor before it forks;
 * each worker writes its own row only; anybody reads. No lock and no system call: every field is atomic by
 * itself, relaxed order, so a reader sees each field whole, but not all fields of one instant.
 *
 * The memory is freed by the kernel with the last process that has it mapped.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { SR_SLOTS_MAX = 8192 };

typedef enum sr_worker_state {
    SR_WORKER_FREE, /* no process has this row */
    SR_WORKER_STARTING,
    SR_WORKER_IDLE, /* waiting for events */
    SR_WORKER_BUSY, /* inside application code */
    SR_WORKER_DRAINING,
} sr_worker_state;

typedef struct sr_row {
    _Alignas(128) _Atomic uint32_t
        state; /* 128: two cache lines, adjacent-line prefetch would couple neighbours */
    _Atomic int32_t pid;
    _Atomic uint64_t
        requests; /* answered or refused by the application's turn; never decreases while pid lives */
    _Atomic uint64_t connections; /* open now */
    _Atomic uint64_t idle;        /* of them between two requests */
    _Atomic uint64_t waiting;     /* complete requests that wait in this worker */
    _Atomic uint64_t given;       /* connections handed to the exchange */
    _Atomic uint64_t taken;       /* and taken from it */
    _Atomic int64_t
        oldest; /* monotonic ns at which its oldest idle connection will be closed; 0: it has none */
    _Atomic uint32_t shed; /* idle connections that others ask it to close, to make room for new ones */
    int bell;              /* eventfd, the same number in all processes: wakes the worker to look at shed */
    _Atomic int64_t since; /* monotonic ns of the last change between idle and busy */
} sr_row;

typedef struct sr_scoreboard {
    uint32_t slots;
    _Atomic uint32_t
        stopping; /* set by the supervisor: the whole server ends, so nothing is given away any more */
    _Atomic uint32_t app_forks; /* set before an application forks: a child may hold our sockets open, so that
                                   a close alone neither ends a connection nor takes it out of an epoll set */
    _Atomic int32_t queued;     /* complete requests in the exchange; set right when it is found empty, for a
                                   worker may be killed between taking and counting */
    _Atomic int64_t slow_at;    /* monotonic ns; when a worker was last found in a call that overran */
    size_t size;                /* bytes mapped */
    sr_row rows[];
} sr_scoreboard;

sr_scoreboard *sr_scoreboard_new(uint32_t slots); /* NULL with errno; 1 <= slots <= SR_SLOTS_MAX */
void sr_scoreboard_free(sr_scoreboard *s);        /* in this process only */
void sr_scoreboard_ring(sr_row *row);             /* wakes the worker of that row */

const char *sr_worker_state_name(uint32_t state); /* static */

#endif
