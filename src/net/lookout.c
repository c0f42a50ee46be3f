#ifdef SR_PORTABLE
#include "lookout.h"
#include "../base/clock.h"
#include "descriptors.h"
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_NS (10 * SR_MILLISECOND)

/* `out` is written when `in`, the caller's, is to be readable. */
typedef struct sight {
    int in, out;
    pid_t pid;  /* 0: it is a clock */
    int64_t at; /* of a clock; 0: not set */
} sight;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sight *sights;
static struct pollfd *polled; /* of the thread: wake[0], then the ends that are written */
static size_t n_sights, room;
static pid_t self; /* whose thread this is */
static int wake[2] = {-1, -1};

bool sr_lookout_ended(pid_t pid)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        return info.si_pid == pid; /* a child, which nobody has waited for yet */
    return kill(pid, 0) != 0 && errno == ESRCH;
}

static void forget(size_t i)
{
    close(sights[i].out);
    sights[i] = sights[--n_sights];
}

static void signal_to(int fd)
{
    ssize_t n = write(fd, "", 1);
    (void)n; /* EAGAIN: it is readable already */
}

/* Looks at all once. Returns ns until the next look; -1: until somebody wakes the thread. */
static int64_t look(void)
{
    int64_t now = sr_clock_monotonic(), next = -1;
    for (size_t i = n_sights; i-- > 0;) {
        sight *s = &sights[i];
        bool due = s->pid ? sr_lookout_ended(s->pid) : s->at && s->at <= now;
        int64_t left = s->pid ? LOOK_NS : s->at ? s->at - now : -1;
        if (due) {
            signal_to(s->out);
            s->at = 0;
            if (s->pid)
                forget(i);
        } else if (left >= 0 && (next < 0 || left < next)) {
            next = left;
        }
    }
    return next;
}

/*
 * Those whose other end was closed are of no use. Asked again, as a number that was polled without the lock
 * may be another pipe now, and by POLLOUT: poll(2) of macOS says nothing about a descriptor of which it is
 * asked nothing.
 */
static void drop_closed(void)
{
    for (size_t i = n_sights; i-- > 0;) {
        struct pollfd p = {.fd = sights[i].out, .events = POLLOUT};
        if (poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP | POLLNVAL))
            forget(i);
    }
}

static void *run(void *unused)
{
    (void)unused;
    for (;;) {
        char bytes[64];
        pthread_mutex_lock(&lock);
        int64_t ns = look();
        size_t n = 1 + n_sights;
        struct pollfd *at = realloc(polled, n * sizeof *at);
        if (!at) {
            pthread_mutex_unlock(&lock);
            usleep(LOOK_NS / 1000);
            continue;
        }
        polled = at;
        polled[0] = (struct pollfd){.fd = wake[0], .events = POLLIN};
        for (size_t i = 1; i < n; i++)
            polled[i] = (struct pollfd){.fd = sights[i - 1].out};
        pthread_mutex_unlock(&lock);
        int64_t least = ns < 3600 * SR_SECOND ? ns : 3600 * SR_SECOND;
        int ms = ns < 0 ? -1 : (int)((least + SR_MILLISECOND - 1) / SR_MILLISECOND);
        if (poll(polled, (nfds_t)n, ms) <= 0)
            continue;
        pthread_mutex_lock(&lock);
        if (polled[0].revents)
            while (read(wake[0], bytes, sizeof bytes) == (ssize_t)sizeof bytes)
                ;
        drop_closed();
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void acquire(void)
{
    pthread_mutex_lock(&lock);
}

static void release(void)
{
    pthread_mutex_unlock(&lock);
}

static bool begin(void)
{
    static bool hooked;
    pthread_t thread;
    sigset_t all, before;
    if (self == getpid())
        return true;
    if (!hooked) /* else a child would find the lock held by a thread that it does not have */
        hooked = pthread_atfork(acquire, release, release) == 0;
    for (int i = 0; i < 2; i++) /* of the process that has forked this one */
        if (wake[i] >= 0)
            close(wake[i]);
    while (n_sights > 0)
        forget(n_sights - 1);
    wake[0] = wake[1] = -1;
    if (sr_sockets_pipe(wake) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        wake[i] = sr_descriptors_above(wake[i]);
        fcntl(wake[i], F_SETFL, O_NONBLOCK);
    }
    sigfillset(&all); /* handlers run in the threads of the program */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err) {
        errno = err;
        return false;
    }
    pthread_detach(thread);
    self = getpid();
    return true;
}

static int add(pid_t pid)
{
    int ends[2] = {-1, -1};
    pthread_mutex_lock(&lock);
    bool made = begin() && sr_sockets_pipe(ends) == 0;
    if (made && n_sights == room) {
        sight *more = realloc(sights, (room + 16) * sizeof *more);
        made = more != NULL;
        if (more) {
            sights = more;
            room += 16;
        }
    }
    if (made) {
        for (int i = 0; i < 2; i++) {
            ends[i] = sr_descriptors_above(ends[i]);
            fcntl(ends[i], F_SETFL, O_NONBLOCK);
        }
        drop_closed();                      /* on macOS nothing else makes the thread look */
        for (size_t i = n_sights; i-- > 0;) /* it was closed, and the thread has not looked yet */
            if (sights[i].in == ends[0])
                forget(i);
        sights[n_sights++] = (sight){.in = ends[0], .out = ends[1], .pid = pid};
        signal_to(wake[1]);
    } else if (ends[0] >= 0) {
        close(ends[0]);
        close(ends[1]);
    }
    pthread_mutex_unlock(&lock);
    return made ? ends[0] : -1;
}

int sr_lookout_process(pid_t pid)
{
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return -1;
    return add(pid);
}

int sr_lookout_clock(void)
{
    return add(0);
}

void sr_lookout_set(int fd, int64_t at)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_sights; i++)
        if (sights[i].in == fd)
            sights[i].at = at;
    signal_to(wake[1]);
    pthread_mutex_unlock(&lock);
}
#endif
