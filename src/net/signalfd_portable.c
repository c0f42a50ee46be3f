#ifdef SR_PORTABLE
#include "signalfd.h"

#include "descriptors.h"
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

/* Less than PIPE_BUF: never in part. */
typedef struct note {
    int signal;
    pid_t pid;
} note;

static int out = -1;

static void came(int signal, siginfo_t *info, void *unused)
{
    note note = {.signal = signal, .pid = info->si_pid};
    int saved = errno;
    (void)unused;
    ssize_t n = write(out, &note, sizeof note);
    (void)n; /* EAGAIN: thousands wait already */
    errno = saved;
}

int sr_signalfd_open(const int *signals, size_t n)
{
    struct sigaction action = {.sa_sigaction = came, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t set;
    int ends[2], before = out;
    if (sr_sockets_pipe(ends) != 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        ends[i] = sr_descriptors_above(ends[i]);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    out = ends[1];
    if (before >= 0)
        close(before); /* now that no handler writes there */
    sigemptyset(&set);
    for (size_t i = 0; i < n; i++) {
        sigaddset(&set, signals[i]);
        sigaction(signals[i], &action, NULL);
    }
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    return ends[0];
}

bool sr_signalfd_next(int fd, int *signal, pid_t *pid)
{
    note note;
    if (read(fd, &note, sizeof note) != (ssize_t)sizeof note)
        return false;
    *signal = note.signal;
    *pid = note.pid;
    return true;
}
#endif
