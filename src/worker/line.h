#ifndef SR_WORKER_LINE_H
#define SR_WORKER_LINE_H
/*
 * line: the connection of a worker to an edge, on which notes go in both directions (share/door.h).
 *
 * Owner: the worker (worker.h), which opens and closes it. Failure: an errno; the edge is gone, or the
 * application has closed the descriptor.
 */
#include "worker.h"

#include "../base/clock.h"

enum { SR_WORKER_PIECE = SR_RECORD_MAX - sizeof(sr_record) }; /* bytes of a record's payload, at most */

#define SR_WORKER_LOOK_NS (20 * SR_MILLISECOND) /* between two checks whether the edge is still there */

/*
 * Whether this process is a child of the one that has opened it, even one that was forked past
 * pthread_atfork.
 */
static inline bool sr_worker_is_child(const sr_worker *w)
{
    return !atomic_load_explicit(w->mine, memory_order_relaxed);
}

/* Tells the edge that there are records in the ring. */
void sr_worker_tell(const sr_worker *w, const sr_worker_line *l);

/*
 * Waits for the answer of this kind to a note about the request at hand. Returns 0 or errno; fds and n as in
 * sr_door_receive.
 */
int sr_worker_answer(sr_worker *w, sr_message_kind kind, sr_message *note, int *fds, int *n);

/*
 * Whether the line is still there. An application may have closed it, and got its number for something of its
 * own, to which no note must go. Both descriptors have high numbers (sr_descriptors_high), so that this takes
 * more than to close and to open files.
 */
bool sr_worker_has_line(const sr_worker_line *l);

#endif
