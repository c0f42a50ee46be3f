#ifndef SR_SINK_H
#define SR_SINK_H
/*
 * sink: where the lines of a log go. Lines are gathered and written in batches, always whole lines. Never
 * waits.
 *
 *   sr_buffer *b = sr_sink_line(sink);
 *   ... append one line with its "\n" to b ...
 *   sr_sink_added(sink, now);              and sr_sink_flush when sr_sink_due has come, and at the end
 *
 * Owner: the process that made it. In a child that it forks the sink is dead: lines are dropped, and nothing
 * is counted.
 * Thread: one at a time.
 * Failure: a line that can't be written is lost and counted. The next batch tries again, so nothing has to be
 * done when a disk has space again or syslog is back. No signal is raised (nosignal.h).
 *
 * The kind of the descriptor, not the kind that was named, decides how lines are written:
 *
 * A file: one write for a batch, at its end (O_APPEND), so that lines of several processes do not mix. If the
 * disk becomes full in the middle of a batch, the part of the last line that was written is cut off again. If
 * that is not possible, as another process has written meanwhile or the file can't be shortened, the next
 * batch begins with a new line.
 *
 * A pipe, a FIFO, a terminal, a stream socket: writes of at most PIPE_BUF (4,096) bytes, which stay in one
 * piece among several processes (write(3p)); a longer line is cut. When it is full, the sink tries again
 * until a batch has gathered, which is lost then.
 *
 * SYSLOG: a connected datagram socket; see syslog.h.
 */
#include "../base/buffer.h"

#include <stdint.h>
#include <sys/types.h>

typedef enum sr_sink_kind { SR_SINK_FILE, SR_SINK_PIPE, SR_SINK_SYSLOG } sr_sink_kind;

enum {
    SR_SINK_BATCH = 64 * 1024, /* bytes of a batch, unless there is a reason for another size */
    SR_SINK_DELAY_MS = 500,    /* how long a line waits at most */
    SR_SINK_RETRY_MS = 20,     /* until a full pipe is tried again */
};

typedef struct sr_sink sr_sink;

/* Takes over fd, on failure too. NULL with errno. */
sr_sink *sr_sink_new(sr_sink_kind kind, int fd, size_t batch);
void sr_sink_free(sr_sink *s); /* flushes once and closes fd; NULL is fine */

/* For SYSLOG: facility * 8 + severity (RFC 3164 4.1.1); local7.info unless this is called. */
void sr_sink_syslog(sr_sink *s, int priority);

sr_buffer *sr_sink_line(sr_sink *s); /* what lines are appended to */
/*
 * One line was appended; `now` is monotonic ns. A line without "\n" at its end, for lack of memory, is
 * removed again and lost.
 */
void sr_sink_added(sr_sink *s, int64_t now);

void sr_sink_flush(sr_sink *s);
int64_t sr_sink_due(const sr_sink *s); /* monotonic ns of the next flush; 0: nothing waits */

/*
 * After a rotation: writes what waits to the old descriptor, and everything later to fd, which is taken over.
 */
void sr_sink_replace(sr_sink *s, int fd);

/*
 * Like write, of at most PIPE_BUF bytes, but never waits, even if fd blocks: what poll reports as writable
 * takes them. For a line that belongs to no sink. -1 with errno; EAGAIN: it is full.
 */
ssize_t sr_sink_write(int fd, const char *at, size_t len);

uint64_t sr_sink_lost(const sr_sink *s); /* lines, since the start */
int sr_sink_error(const sr_sink *s);     /* errno of the last write; 0: it succeeded, or there was none */

#endif
