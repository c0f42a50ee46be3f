#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "outlet.h"

#include "../base/clock.h"
#include "../net/nosignal.h"
#include "../net/sockets.h"
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef SR_PORTABLE
#include <sys/syscall.h>
#ifndef RWF_NOWAIT
#define RWF_NOWAIT 8
#endif
#endif

#define PIECE_NS (100 * SR_MILLISECOND)
#define ALL_NS SR_SECOND
#define LOOK_NS (SR_MILLISECOND / 20) /* until the next look whether another process has written its line */

enum { TERMINAL = 64 }; /* bytes at a time to one that cannot be opened again: it seldom waits for these */

struct sr_outlet_shared {
    _Atomic uint64_t writer; /* pid, and below it a number of this write; 0: nobody writes */
    _Atomic uint64_t file;   /* which one it is about; 0: not known yet */
    atomic_bool torn;        /* the last thing written may be part of a line */
    atomic_bool stalled;     /* the reader did not take the last line */
};

/* Whose turn it is, while one line is written. */
typedef struct turn {
    sr_outlet *to;
    sr_outlet_shared *shared; /* NULL: the descriptor is of no other process, or takes a line as a whole */
    uint64_t self;
} turn;

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

/* Without RWF_NOWAIT it may wait if another process writes in between. */
static ssize_t write_pipe(int fd, const char *at, size_t len)
{
#ifndef SR_PORTABLE
    struct iovec iov = {(char *)(uintptr_t)at, len};
    ssize_t n =
        syscall(SYS_pwritev2, fd, &iov, 1L, -1L, -1L, RWF_NOWAIT); /* no function in musl before 1.2.5 */
    /* before Linux 5.14, or where a filter refuses it, no call can be told not to wait */
    if (n >= 0 || errno == EAGAIN || errno == EPIPE || errno == EINTR)
        return n;
#endif
    return sr_sink_write(fd, at, least(len, PIPE_BUF));
}

static ssize_t put(int fd, mode_t type, const char *at, size_t len)
{
    switch (type) {
    case S_IFSOCK:
        return send(fd, at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    case S_IFCHR:
        return write_terminal(fd, at, len);
    case S_IFIFO:
        return write_pipe(fd, at, len);
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

/* --- one process at a time --- */

sr_outlet_shared *sr_outlet_share(void)
{
    void *at =
        mmap(NULL, sizeof(sr_outlet_shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* NULL: a line goes there as a whole, or it is another file than that of the other processes. */
static sr_outlet_shared *shared_of(const sr_outlet *o, const struct stat *st)
{
    uint64_t file = ((uint64_t)st->st_dev << 40) ^ ((uint64_t)st->st_rdev << 20) ^ (uint64_t)st->st_ino,
             none = 0;
    file |= (uint64_t)1 << 63;
    if (!o->shared || S_ISREG(st->st_mode) ||
        (!atomic_compare_exchange_strong(&o->shared->file, &none, file) && none != file))
        return NULL;
    return o->shared;
}

/* Whether this writer has been in the way for so long, or is no more, that nobody waits for it any longer. */
static bool is_over(sr_outlet *o, uint64_t writer, int64_t now)
{
    if (o->other != writer) {
        o->other = writer;
        o->other_at = now;
    }
    return now - o->other_at >= PIECE_NS || (kill((pid_t)(writer >> 32), 0) && errno == ESRCH);
}

static uint64_t next_turn(void)
{
    static uint32_t number;
    return (uint64_t)getpid() << 32 | ++number;
}

/* False: another process writes, and `until` has come. */
static bool turn_begin(turn *t, int64_t until)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    uint64_t writer = 0;
    if (!t->shared)
        return true;
    t->self = next_turn();
    while (!atomic_compare_exchange_strong(&t->shared->writer, &writer, t->self)) {
        int64_t now = sr_clock_monotonic();
        if (!writer || (is_over(t->to, writer, now) &&
                        atomic_compare_exchange_strong(&t->shared->writer, &writer, t->self)))
            break;
        if (now >= until)
            return false;
        nanosleep(&look, NULL);
        writer = 0;
    }
    return true;
}

/* False: another process has not waited for this one any longer. */
static bool turn_lasts(const turn *t)
{
    return !t->shared || atomic_load(&t->shared->writer) == t->self;
}

/* Part of the line was taken, so that the others wait on. False: one has not waited so long. */
static bool turn_renew(turn *t)
{
    uint64_t before = t->self;
    if (!t->shared)
        return true;
    t->self = next_turn();
    return atomic_compare_exchange_strong(&t->shared->writer, &before, t->self);
}

static void turn_end(const turn *t)
{
    uint64_t self = t->self;
    if (t->shared)
        atomic_compare_exchange_strong(&t->shared->writer, &self, 0);
}

static bool is_torn(const turn *t)
{
    return t->shared ? atomic_load(&t->shared->torn) : t->to->torn;
}

static void set_torn(const turn *t, bool torn)
{
    if (t->shared && turn_lasts(t))
        atomic_store(&t->shared->torn, torn);
    t->to->torn = torn;
}

/* A process that hurries has not waited long enough to say so for others. */
static void set_stalled(const turn *t, bool stalled)
{
    if (t->shared && !(stalled && t->to->patience_ns))
        atomic_store(&t->shared->stalled, stalled);
    t->to->stalled = stalled;
}

static bool is_stalled(const turn *t)
{
    return t->to->stalled || (t->shared && atomic_load(&t->shared->stalled));
}

/* --- */

/* Returns 0 or errno, and how many bytes were written. */
static int put_all(turn *t, int fd, mode_t type, const char *at, size_t len, int64_t until, size_t *done)
{
    while (*done < len) {
        ssize_t n = put(fd, type, at + *done, len - *done);
        if (n == 0)
            return ENOSPC;
        if (n > 0)
            *done += (size_t)n;
        if (n > 0 || errno == EINTR) {
            if (*done < len && !turn_renew(t))
                return EAGAIN;
            continue;
        }
        if (errno != EAGAIN)
            return errno;
        int64_t left = until - sr_clock_monotonic();
        if (left <= 0 || !ready(fd, left < PIECE_NS ? left : PIECE_NS) || !turn_lasts(t))
            return EAGAIN;
    }
    return 0;
}

static int put_line(turn *t, int fd, mode_t type, const char *at, size_t len, int64_t until, size_t *done)
{
    size_t newline = 0;
    int err = is_torn(t) ? put_all(t, fd, type, "\n", 1, until, &newline) : 0;
    if (err)
        return err;
    if (t->shared) /* in case that this process is killed */
        set_torn(t, true);
    err = put_all(t, fd, type, at, len, until, done);
    set_torn(t, err && *done && at[*done - 1] != '\n');
    return err;
}

int sr_outlet_write(sr_outlet *o, int fd, const char *at, size_t len)
{
    struct stat st;
    if (fstat(fd, &st))
        return errno;
    size_t done = 0;
    sr_nosignal mask;
    turn t = {.to = o, .shared = shared_of(o, &st)};
    int64_t until = sr_clock_monotonic() + (o->patience_ns ? o->patience_ns : ALL_NS);
    /*
     * a short line might fit into the last page of a pipe: the reader has come back when poll(2) says so, not
     * before
     */
    bool begun = !(is_stalled(&t) && !ready(fd, 0)) && turn_begin(&t, until);
    if (!begun || (is_stalled(&t) && !ready(fd, 0))) { /* it has stalled while another process wrote */
        if (begun)
            turn_end(&t);
        o->stalled = true;
        o->lost += lines(at, len);
        return EAGAIN;
    }
    set_stalled(&t, false);
    sr_nosignal_begin(&mask);
    int err = put_line(&t, fd, st.st_mode & S_IFMT, at, len, until, &done);
    sr_nosignal_end(&mask, err);
    if (turn_lasts(&t))
        set_stalled(&t, err == EAGAIN);
    turn_end(&t);
    o->stalled = err == EAGAIN;
    if (err == EAGAIN)
        o->lost += lines(at + done, len - done);
    return err;
}

bool sr_outlet_returns(const sr_outlet *o, int fd)
{
    return o->lost && ready(fd, 0);
}
