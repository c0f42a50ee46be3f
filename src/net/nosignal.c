#include "nosignal.h"

#include <errno.h>
#include <time.h>

static void both(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
    sigaddset(set, SIGXFSZ);
}

/* Takes one of these that waits. */
static void forget(const sigset_t *set)
{
#ifdef SR_PORTABLE
    sigset_t waiting;
    int taken;
    if (sigpending(&waiting) == 0 && (sigismember(&waiting, SIGPIPE) || sigismember(&waiting, SIGXFSZ)))
        sigwait(set, &taken);
#else
    static const struct timespec now;
    sigtimedwait(set, NULL, &now);
#endif
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
    int saved = errno;
    sigset_t set;
    both(&set);
    if (err == EPIPE || err == EFBIG)
        forget(&set);
    pthread_sigmask(SIG_SETMASK, &q->before, NULL);
    errno = saved;
}
