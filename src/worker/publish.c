#include "worker.h"

#include "edges.h"
#include "line.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

/* Nobody else holds the other end of its line. */
static bool lives(const sr_worker_line *l)
{
    char byte;
    if (!sr_worker_has_line(l)) /* the application has closed it */
        return kill(l->pid, 0) == 0 || errno == EPERM;
    return recv(l->line, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

/*
 * Returns room for a record; NULL: the edge is gone. No handler of a signal runs meanwhile: it might publish,
 * too. Edges always read, so this takes no longer than a step of their loop.
 */
static sr_record *room(const sr_worker *w, const sr_worker_line *l, size_t payload)
{
    for (;;) {
        uint32_t seen = sr_ring_want(l->queue.ring);
        sr_record *r = sr_ring_reserve(l->queue.ring, payload);
        if (r)
            return r;
        sr_worker_tell(w, l);
        sr_ring_wait(l->queue.ring, seen, SR_WORKER_LOOK_NS);
        if (!lives(l))
            return NULL;
    }
}

static void put(const sr_worker *w, const sr_worker_line *l, sr_bytes packed)
{
    while (packed.len) {
        size_t some = packed.len < SR_WORKER_PIECE ? packed.len : SR_WORKER_PIECE;
        sr_record *r = sr_ring_reserve(l->queue.ring, some);
        if (!r && !(r = room(w, l, some)))
            return;
        *r = (sr_record){.kind = SR_REPLY_PUBLISH,
                         .flags = some < packed.len ? SR_REPLY_MORE : 0,
                         .slot = SR_REPLY_NO_SLOT};
        memcpy(r + 1, packed.at, some);
        sr_ring_commit(l->queue.ring, r, some);
        packed = sr_bytes_of(packed.at + some, packed.len - some);
    }
    sr_worker_tell(w, l);
}

bool sr_worker_publish(sr_worker *w, sr_bytes packed)
{
    int32_t given[SR_EDGES_MAX] = {0}; /* PID of the edge at each place that has it */
    if (sr_worker_is_child(w) || !sr_worker_meet(w))
        return false;
    /*
     * once more if an edge has come meanwhile: it may have taken connections over from one that had not read
     * this
     */
    do {
        for (unsigned i = 0; i < w->n_open; i++) {
            int32_t *pid = &given[w->open[i] - w->edges];
            if (*pid != w->open[i]->pid)
                put(w, w->open[i], packed);
            *pid = w->open[i]->pid;
        }
        atomic_thread_fence(memory_order_seq_cst);
    } while (atomic_load(&w->sleepers->epoch) != w->epoch && sr_worker_meet(w));
    return true;
}
