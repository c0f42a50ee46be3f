#include "sink.h"

#include "../base/clock.h"
#include "../net/nosignal.h"
#include "../net/sockets.h"
#include "syslog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOCAL7_INFO = 23 * 8 + 6 };

struct sr_sink {
    sr_sink_kind kind;
    int fd;
    bool append;     /* fd is a regular file, opened with O_APPEND */
    bool socket;     /* fd is a stream socket */
    bool waits;      /* a write may block */
    bool inside;     /* the buffer begins in the middle of a line; the beginning is written already */
    bool torn;       /* the last thing written is part of a line, and the rest is lost */
    pid_t pid;       /* of the process that made the sink */
    size_t piece;    /* how many bytes one write takes at most */
    size_t line_max; /* the longest line with its "
"; longer ones are cut */
    size_t batch;
    size_t known; /* bytes of complete lines in the buffer; what the caller is appending comes after them */
    size_t lines; /* how many lines these are */
    uint64_t lost;
    int error; /* errno of the last write, or 0 */
    int64_t due;
    sr_buffer buffer;
    sr_syslog syslog;
};

/* Finds out what fd is: a FIFO may have been given as a file. */
static void look(sr_sink *s, int fd)
{
    struct stat st = {0};
    int flags = fcntl(fd, F_GETFL);
    bool known = fstat(fd, &st) == 0, regular = known && S_ISREG(st.st_mode);
    s->fd = fd;
    s->append = regular && flags >= 0 && flags & O_APPEND;
    s->socket = known && S_ISSOCK(st.st_mode);
    s->waits = !regular && !s->socket && (flags < 0 || !(flags & O_NONBLOCK));
    s->piece = regular ? SIZE_MAX : PIPE_BUF;
    s->line_max = s->kind == SR_SINK_SYSLOG ? SR_SYSLOG_LINE_MAX : s->piece;
    if (s->kind == SR_SINK_SYSLOG)
        sr_syslog_init(&s->syslog, fd, s->syslog.priority);
}

sr_sink *sr_sink_new(sr_sink_kind kind, int fd, size_t batch)
{
    sr_sink *s = malloc(sizeof *s);
    if (!s) {
        close(fd);
        errno = ENOMEM;
        return NULL;
    }
    *s = (sr_sink){.kind = kind, .batch = batch, .pid = getpid(), .syslog = {.priority = LOCAL7_INFO}};
    look(s, fd);
    return s;
}

void sr_sink_free(sr_sink *s)
{
    if (!s)
        return;
    sr_sink_flush(s);
    close(s->fd);
    sr_buffer_free(&s->buffer);
    free(s);
}

void sr_sink_syslog(sr_sink *s, int priority)
{
    s->syslog.priority = priority;
}

sr_buffer *sr_sink_line(sr_sink *s)
{
    return &s->buffer;
}

static size_t count_lines(const char *at, size_t len)
{
    size_t n = 0;
    for (const char *end = at + len; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        n++;
    return n;
}

/* Updates the counts after lines have left the buffer. */
static void settle(sr_sink *s)
{
    sr_buffer *b = &s->buffer;
    s->known = sr_buffer_len(b);
    s->lines = s->known ? count_lines(sr_buffer_at(b), s->known) : 0;
    s->due = s->known ? sr_clock_monotonic() + SR_SINK_RETRY_MS * SR_MILLISECOND : 0;
    if (!s->known && b->cap > 4 * s->batch) /* the buffer has grown for one long line */
        sr_buffer_free(b);
}

static void forget(sr_sink *s)
{
    sr_buffer_reset(&s->buffer);
    s->inside = false;
    settle(s);
}

void sr_sink_added(sr_sink *s, int64_t now)
{
    sr_buffer *b = &s->buffer;
    size_t len = sr_buffer_len(b), added = len - s->known;
    if (!added || sr_buffer_at(b)[len - 1] != '\n') {
        b->end -= added;
        s->lost++;
        return;
    }
    if (added > s->line_max) {
        b->end -= added - s->line_max;
        b->data[b->end - 1] = '\n';
    }
    s->known = sr_buffer_len(b);
    s->lines++;
    if (!s->due)
        s->due = now + SR_SINK_DELAY_MS * SR_MILLISECOND;
    if (s->known >= s->batch || (s->kind == SR_SINK_SYSLOG && s->lines % SR_SYSLOG_BURST == 0))
        sr_sink_flush(s);
}

ssize_t sr_sink_write(int fd, const char *at, size_t len)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    if (poll(&ready, 1, 0) != 0)
        return write(fd, at, len);
    errno = EAGAIN;
    return -1;
}

static ssize_t put(const sr_sink *s, const char *at, size_t len)
{
    ssize_t n;
    do
        n = s->socket  ? send(s->fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL)
            : s->waits ? sr_sink_write(s->fd, at, len)
                       : write(s->fd, at, len);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        errno = ENOSPC;
    return n > 0 ? n : -1;
}

/* The length of the next write: as many lines as fit. No single line is longer than that. */
static size_t piece(const sr_sink *s)
{
    size_t len = sr_buffer_len(&s->buffer);
    if (len <= s->piece)
        return len;
    const char *at = sr_buffer_at(&s->buffer), *last = sr_bytes_last(sr_bytes_of(at, s->piece), '\n');
    return (size_t)(last - at) + 1;
}

/* Writes the buffer. Returns 0, or errno; then what was not written stays in the buffer. */
static int put_all(sr_sink *s)
{
    sr_buffer *b = &s->buffer;
    if (s->torn && put(s, "\n", 1) < 0)
        return errno;
    s->torn = false;
    while (sr_buffer_len(b)) {
        const char *at = sr_buffer_at(b);
        ssize_t n = put(s, at, piece(s));
        if (n < 0)
            return errno;
        s->inside = at[n - 1] != '\n';
        sr_buffer_take(b, (size_t)n);
    }
    return 0;
}

/*
 * The disk became full in the middle of a line: truncates the file to the last complete line, if nothing was
 * appended after it. Nobody can append between fstat and ftruncate: the disk has no room for other lines
 * either.
 */
static bool mend(const sr_sink *s, off_t size, size_t begin)
{
    const sr_buffer *b = &s->buffer;
    const char *at = b->data + begin, *last = sr_bytes_last(sr_bytes_of(at, b->from - begin), '\n');
    off_t written = (off_t)(b->from - begin), whole = last ? last - at + 1 : 0;
    struct stat st;
    if (fstat(s->fd, &st) != 0 || st.st_size != size + written)
        return false;
    return ftruncate(s->fd, size + whole) == 0;
}

static int write_lines(sr_sink *s)
{
    struct stat st;
    size_t begin = s->buffer.from;
    bool torn = s->torn, sized = s->append && fstat(s->fd, &st) == 0;
    sr_nosignal mask;
    sr_nosignal_begin(&mask);
    int err = put_all(s);
    if (err && s->inside && sized && mend(s, st.st_size + (torn && !s->torn), begin))
        s->inside = false;
    sr_nosignal_end(&mask, err);
    return err;
}

void sr_sink_flush(sr_sink *s)
{
    if (!s->known)
        return;
    sr_buffer *b = &s->buffer;
    if (getpid() == s->pid) {
        bool syslog = s->kind == SR_SINK_SYSLOG;
        int err = syslog ? sr_syslog_send(&s->syslog, s->fd, b) : write_lines(s);
        s->error = err;
        if (err == EAGAIN && sr_buffer_len(b) < s->batch)
            return settle(s);
        s->torn = s->torn || s->inside;
        s->lost += count_lines(sr_buffer_at(b), sr_buffer_len(b));
    }
    forget(s);
}

int64_t sr_sink_due(const sr_sink *s)
{
    return s->due;
}

void sr_sink_replace(sr_sink *s, int fd)
{
    sr_sink_flush(s);
    if (s->inside) { /* the beginning of this line is in the old file */
        const char *at = sr_buffer_at(&s->buffer);
        sr_buffer_take(&s->buffer, (size_t)((const char *)memchr(at, '\n', s->known) - at) + 1);
        s->lost++;
        s->inside = false;
        settle(s);
    }
    s->torn = false;
    close(s->fd);
    look(s, fd);
}

int sr_sink_error(const sr_sink *s)
{
    return s->error;
}

uint64_t sr_sink_lost(const sr_sink *s)
{
    return s->lost;
}
