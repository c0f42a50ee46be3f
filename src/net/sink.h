#ifndef SR_SINK_H
#define SR_SINK_H
/*
 * sink: where the lines of a log go. They are gathered and written in batches, whole lines only. Never waits.
 *
 *   sr_buffer *b = sr_sink_line(sink);
 *   ... appends one line with its "\n" to b ...
 *   sr_sink_added(sink, now);              and sr_sink_flush when sr_sink_due has come, and at the end
 *
 * Owner: one process, which made it; in a child that it forks the sink is dead: lines go nowhere, nothing is
 * counted.
 * Thread: any, under the lock of the owner.
 * Failure: a line that can't be written is lost and counted; the next batch tries anew, so a disk that has room
 * again or a syslog that is back needs nothing. No signal is raised (see nosignal.h).
 *
 * What the descriptor is decides how lines are written, whichever kind was named:
 *
 * A file: one write for a batch, at its end (O_APPEND), so that lines of many processes never mix. When the disk
 * becomes full inside a batch, what was written of the last line is cut off again, unless another process has
 * written meanwhile or the file can't be shortened: then the next batch starts with a new line.
 *
 * A pipe, a FIFO, a terminal, a stream socket: writes of at most PIPE_BUF (4,096) bytes, which are whole among
 * many processes (write(3p)); a longer line is cut. One that takes no more is tried again, until a batch has
 * gathered: that is lost then.
 *
 * SYSLOG: a connected datagram socket; see syslog.h.
 */
#include "../base/buffer.h"

#include <stdint.h>

typedef enum sr_sink_kind { SR_SINK_FILE, SR_SINK_PIPE, SR_SINK_SYSLOG } sr_sink_kind;

enum {
    SR_SINK_BATCH = 64 * 1024, /* bytes: what sr_sink_new is given unless there is a reason */
    SR_SINK_DELAY_MS = 500,    /* that a line waits at most */
    SR_SINK_RETRY_MS = 20,     /* until a pipe that was full is tried again */
};

typedef struct sr_sink sr_sink;

/* fd is the sink's from now on, at failure too. NULL with errno. */
sr_sink *sr_sink_new(sr_sink_kind kind, int fd, size_t batch);
void sr_sink_free(sr_sink *s); /* flushes once and closes fd. NULL is allowed */

/* For SYSLOG: facility * 8 + severity (RFC 3164 4.1.1); without it local7.info. */
void sr_sink_syslog(sr_sink *s, int priority);

sr_buffer *sr_sink_line(sr_sink *s);
/* One line was appended; now is monotonic ns. Without "\n" at its end, for lack of memory, it is taken back and
 * lost. */
void sr_sink_added(sr_sink *s, int64_t now);

void sr_sink_flush(sr_sink *s);
int64_t sr_sink_due(const sr_sink *s); /* monotonic ns of the next flush; 0: nothing waits */

/* After a rotation: what waits is written to the old descriptor, what comes to this one, the sink's own now. */
void sr_sink_replace(sr_sink *s, int fd);

uint64_t sr_sink_lost(const sr_sink *s); /* lines, in all */
int sr_sink_error(const sr_sink *s);     /* errno of the last write; 0: it went well, or there was none */

#endif
