#ifndef SR_PORTABLE
#include "signalfd.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

int sr_signalfd_open(const int *signals, size_t n)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        sigaddset(&set, signals[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

bool sr_signalfd_next(int fd, int *signal, pid_t *pid)
{
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof info) != (ssize_t)sizeof info)
        return false;
    *signal = (int)info.ssi_signo;
    *pid = (pid_t)info.ssi_pid;
    return true;
}
#endif
