#include "quiet.h"

#include <errno.h>
#include <time.h>

static void both(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
    sigaddset(set, SIGXFSZ);
}

void sr_quiet_begin(sr_quiet *q)
{
    int saved = errno;
    sigset_t set;
    both(&set);
    pthread_sigmask(SIG_BLOCK, &set, &q->before);
    errno = saved;
}

void sr_quiet_end(const sr_quiet *q, int err)
{
    static const struct timespec now;
    int saved = errno;
    sigset_t set;
    both(&set);
    if (err == EPIPE || err == EFBIG)
        sigtimedwait(&set, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &q->before, NULL);
    errno = saved;
}
