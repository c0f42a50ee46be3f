#ifndef PLANNED_H
#define PLANNED_H
/*
 * planned: the sink itself, with writes that do what they are told, and lines for it. One sink, one thread.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

/* What write is to do next: a count of bytes, minus an errno, or WHOLE; then all is as it is */
enum { WHOLE = INT_MAX };
static int plan[8], planned, writes;
static void (*between)(void); /* called after a write that was planned */

static inline ssize_t planned_write(int fd, const void *at, size_t len)
{
    int step = planned ? plan[0] : WHOLE;
    writes++;
    if (planned)
        memmove(plan, plan + 1, (size_t)--planned * sizeof *plan);
    if (step < 0) {
        errno = -step;
        return -1;
    }
    ssize_t n = write(fd, at, (size_t)step < len ? (size_t)step : len);
    if (step != WHOLE && between)
        between();
    return n;
}

#define write planned_write
#include "log/sink.c"
#undef write

enum { BATCH = 1000 };
static char text[1 << 20];
static size_t len;
static sr_sink *sink;

static inline void then(int a, int b, int c)
{
    memcpy(plan, (int[]){a, b, c}, 3 * sizeof *plan);
    planned = 3;
    writes = 0;
}

static inline void add(const char *at, size_t n)
{
    sr_buffer_add(sr_sink_line(sink), at, n);
    sr_sink_added(sink, sr_clock_monotonic());
}

static inline void line(const char *at)
{
    add(at, strlen(at));
}

/* "line 000001\n", twelve bytes each; flushes */
static inline void lines(int from, int to)
{
    char one[32];
    for (int i = from; i <= to; i++)
        add(one, (size_t)snprintf(one, sizeof one, "line %06d\n", i));
    sr_sink_flush(sink);
}

static inline void slurp(int fd)
{
    ssize_t n;
    for (len = 0; len < sizeof text && (n = read(fd, text + len, sizeof text - len)) > 0;)
        len += (size_t)n;
}

/* Lines of that form in text; -1 when there is anything else. Empty ones do not count. */
static inline int whole_lines(void)
{
    int n = 0;
    for (char *at = text, *eol; at < text + len; at = eol + 1) {
        if (!(eol = memchr(at, '\n', len - (size_t)(at - text))))
            return -1;
        if (eol > at && (eol - at != 11 || memcmp(at, "line ", 5) != 0))
            return -1;
        n += eol > at;
    }
    return n;
}

static inline void done(long long lost, const char *name)
{
    is_int((long long)sr_sink_lost(sink), lost, name);
    sr_sink_free(sink);
    planned = 0;
    between = NULL;
}

#endif
