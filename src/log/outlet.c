#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pwritev2 */
#endif
#include "outlet.h"

#include "../base/clock.h"
#include "../net/nosignal.h"
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PIECE_NS (100 * SR_MILLISECOND)
#define ALL_NS SR_SECOND

enum { TERMINAL = 64 }; /* bytes at a time to one that cannot be opened again: it seldom waits for these */

static bool ready(int fd, int64_t ns)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int64_t until = sr_clock_monotonic() + ns;
    int n;
    while ((n = poll(&p, 1, (int)(ns / SR_MILLISECOND))) < 0 && errno == EINTR)
        if ((ns = until - sr_clock_monotonic()) < 0)
            ns = 0;
    return n > 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* POLLOUT of a terminal means some room, not enough: it is opened once more, as a file that does not wait. */
static ssize_t write_terminal(int fd, const char *at, size_t len)
{
    char path[sizeof "/proc/self/fd/" + 10];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int own = ready(fd, 0) ? open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC) : -1;
    if (own < 0)
        return sr_sink_write(fd, at, least(len, TERMINAL));
    ssize_t n = write(own, at, len);
    int err = errno;
    close(own);
    errno = err;
    return n;
}

static ssize_t put(int fd, mode_t type, const char *at, size_t len)
{
    struct iovec iov = {(char *)(uintptr_t)at, len};
    ssize_t n;
    switch (type) {
    case S_IFSOCK:
        return send(fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    case S_IFCHR:
        return write_terminal(fd, at, len);
    case S_IFIFO:
        n = pwritev2(fd, &iov, 1, -1, RWF_NOWAIT);
        /*
         * Before Linux 5.14, or where a filter refuses it, no call can be told not to wait: one may wait if another process writes in
         * between.
         */
        return n < 0 && errno != EAGAIN && errno != EPIPE && errno != EINTR
                   ? sr_sink_write(fd, at, least(len, PIPE_BUF))
                   : n;
    default:
        return write(fd, at, len);
    }
}

static uint64_t lines(const char *at, size_t len)
{
    uint64_t n = 0;
    for (const char *end = at + len; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
        n++;
    return n ? n : 1;
}

/* Returns 0 or errno, and how many bytes were written. */
static int put_all(sr_outlet *o, int fd, const char *at, size_t len, size_t *done)
{
    struct stat st;
    int64_t until = sr_clock_monotonic() + (o->patience_ns ? o->patience_ns : ALL_NS);
    if (fstat(fd, &st))
        return errno;
    while (*done < len) {
        ssize_t n = put(fd, st.st_mode & S_IFMT, at + *done, len - *done);
        if (n == 0)
            return ENOSPC;
        if (n > 0)
            *done += (size_t)n;
        if (n > 0 || errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return errno;
        int64_t left = until - sr_clock_monotonic();
        if (left <= 0 || !ready(fd, left < PIECE_NS ? left : PIECE_NS))
            return EAGAIN;
    }
    return 0;
}

int sr_outlet_write(sr_outlet *o, int fd, const char *at, size_t len)
{
    size_t done = 0, newline = 0;
    sr_nosignal mask;
    /* a short line might fit into the last page of a pipe: the reader has come back when poll(2) says so, not before */
    if (o->stalled && !ready(fd, 0)) {
        o->lost += lines(at, len);
        return EAGAIN;
    }
    o->stalled = false;
    sr_nosignal_begin(&mask);
    int err = o->torn ? put_all(o, fd, "\n", 1, &newline) : 0;
    if (!err) {
        o->torn = false;
        err = put_all(o, fd, at, len, &done);
        o->torn = err && done && at[done - 1] != '\n';
    }
    sr_nosignal_end(&mask, err);
    o->stalled = err == EAGAIN;
    if (o->stalled)
        o->lost += lines(at + done, len - done);
    return err;
}

bool sr_outlet_returns(const sr_outlet *o, int fd)
{
    return o->lost && ready(fd, 0);
}
