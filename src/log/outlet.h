#ifndef SR_OUTLET_H
#define SR_OUTLET_H
/*
 * outlet: writes to a log whose reader may have stalled: a pipe or a FIFO, a terminal that was stopped,
 * journald. A process that logs must not stand still with it. The descriptor belongs to other processes as
 * well, so it stays blocking.
 *
 * A reader that is slow gets 100 ms for each piece, and a second in all, or `patience_ns`. One that takes
 * nothing in that time is not waited for again before it has taken something; until then lines are lost and
 * counted. A regular file is written as always.
 *
 * A pipe, a terminal or a socket may take a line in parts. Processes that were forked after sr_outlet_share
 * write one at a time, so that no other line comes between the parts. A process waits 100 ms for another one
 * as well, for one that was killed not at all; then it goes on without it: a newline comes first, and the
 * other one, if it was only stopped, loses the rest of its line. Not covered: a process that writes to the
 * descriptor by itself, another server on the same terminal, and the processes from before and after the
 * supervisor has replaced itself.
 *
 * Owner: the caller, one for each descriptor of a process. Thread: one at a time. Neither SIGPIPE nor SIGXFSZ
 * is sent.
 * Failure: the rest of what was to be written is lost. If a part of a line was written, a newline comes
 * before the next one, from any process.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sr_outlet_shared sr_outlet_shared;

typedef struct sr_outlet {
    int64_t patience_ns; /* for all of a write; 0: a second */
    bool stalled;        /* the reader did not take the last line */
    bool torn;           /* the last thing written is part of a line; with `shared`, see there */
    uint64_t lost;       /* lines that a reader did not take; the caller sets it to 0 when it has said so */
    sr_outlet_shared *shared; /* of all processes; NULL: there is no other. Not owned */
    uint64_t other;           /* the process that has kept this one waiting, since other_at */
    int64_t other_at;
} sr_outlet;

/*
 * Memory for processes that are forked from now on, for one file; others write to another one as before.
 * Never freed. NULL: errno.
 */
sr_outlet_shared *sr_outlet_share(void);

/* Returns 0, or errno; EAGAIN: the reader has stalled. */
int sr_outlet_write(sr_outlet *o, int fd, const char *at, size_t len);

/* Whether the next line may be written: lines were lost, and the reader has taken something again. */
bool sr_outlet_returns(const sr_outlet *o, int fd);

#endif
