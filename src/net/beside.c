#include "beside.h"

#include "pidfd.h"
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct news {
    pid_t pid;
    int err;
} news;

/* Runs in the new process: calls only what is safe after a fork in a process with threads. */
static int become(const char *path, char *const *words, const int *fds, int n)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return errno;
    for (int i = 0; i < n; i++)
        if (fcntl(fds[i], F_SETFD, 0) != 0)
            return errno;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execv(path, words);
    return errno;
}

static void tell(int fd, const news *what)
{
    /* less than PIPE_BUF: either all of it is written, or the reader is gone */
    ssize_t n = write(fd, what, sizeof *what);
    (void)n;
}

/* Runs in the intermediate process. Its child is adopted by init or by a subreaper. */
static void fork_again(int report, const char *path, char *const *words, const int *fds, int n)
{
    news what = {.pid = fork()};
    if (what.pid > 0)
        _exit(0);
    if (what.pid < 0) {
        what.err = errno;
        tell(report, &what);
        _exit(1);
    }
    what.pid = getpid();
    tell(report, &what);
    what.err = become(path, words, fds, n);
    tell(report, &what);
    _exit(1);
}

static bool hear(int fd, news *what)
{
    ssize_t n;
    do
        n = read(fd, what, sizeof *what);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *what;
}

int sr_beside_start(const char *path, char *const *words, const int *fds, int n, pid_t *pid, int *pidfd)
{
    int ends[2];
    sigset_t all, before;
    news what;
    if (sr_sockets_pipe(ends) != 0)
        return errno;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* no signal handler may run in the new processes */
    pid_t between = fork();
    int err = between < 0 ? errno : 0;
    if (between == 0)
        fork_again(ends[1], path, words, fds, n);
    close(ends[1]);
    while (between > 0 && waitpid(between, NULL, 0) < 0 && errno == EINTR)
        ; /* ECHILD: SIGCHLD is ignored, so the kernel has already reaped it */
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!err && !hear(ends[0], &what))
        err = ECHILD;
    if (!err && !(err = what.err)) {
        *pid = what.pid;
        /* now: once it has ended, another process may have its PID */
        *pidfd = sr_pidfd_open(what.pid);
        err = *pidfd < 0 ? errno : hear(ends[0], &what) ? what.err : 0;
        if (*pidfd < 0) /* nobody would notice when it ends */
            kill(what.pid, SIGKILL);
        if (err && *pidfd >= 0)
            close(*pidfd);
    }
    close(ends[0]);
    return err;
}
