#include "nosignal.h"

#include <errno.h>
#include <time.h>

static void both(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
    sigaddset(set, SIGXFSZ);
}

void sr_nosignal_begin(sr_nosignal *q)
{
    int saved = errno;
    sigset_t set;
    both(&set);
    pthread_sigmask(SIG_BLOCK, &set, &q->before);
    errno = saved;
}

void sr_nosignal_end(const sr_nosignal *q, int err)
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
