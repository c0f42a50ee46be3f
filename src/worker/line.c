#include "line.h"

#include "../net/descriptors.h"
#include "../share/door.h"

#include <unistd.h>

bool sr_worker_has_line(const sr_worker_line *l)
{
    return l->line >= 0 && sr_descriptors_what(l->line) == l->line_is;
}

void sr_worker_tell(const sr_worker *w, const sr_worker_line *l)
{
    sr_replies *replies = l->queue.replies;
    uint64_t one = 1;
    atomic_fetch_or(&replies->replied[w->row / 64], UINT64_C(1) << (w->row % 64));
    if (atomic_load(&replies->asleep) && atomic_exchange(&replies->asleep, 0)) {
        ssize_t n = write(l->bell, &one, sizeof one);
        (void)n; /* EAGAIN: the bell is set already */
    }
}

int sr_worker_answer(sr_worker *w, sr_message_kind kind, sr_message *note, int *fds, int *n)
{
    for (;;) {
        int err = sr_door_receive(w->from->line, note, fds, n, true);
        if (err || (note->kind == kind && note->number == w->number))
            return err;
        while (*n > 0) /* an earlier answer that could not be received at the time */
            close(fds[--*n]);
    }
}
