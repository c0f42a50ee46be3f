/* poll: sleeps until a signal comes, a descriptor is ready, or a time is over; nothing is lost in between. */
#include "poll.h"

#include <poll.h>
#include <signal.h>

static void open_mask(pTHX_ AV *signals, sigset_t *mask)
{
    for (SSize_t i = 0; i <= av_len(signals); i++)
        sigdelset(mask, (int)SvIV(*av_fetch(signals, i, 1)));
}

#ifdef SR_PORTABLE
enum { SLICE_MS = 10 };

/* A signal waits that `open` lets in. */
static bool knocks(const sigset_t *open)
{
    sigset_t came;
    sigpending(&came);
    for (int i = 1; i < NSIG; i++)
        if (sigismember(&came, i) > 0 && !sigismember(open, i))
            return true;
    return false;
}

/*
 * Not all systems have ppoll(2). So signals are let in when this returns, and it looks for them: a handler
 * that ran before poll(2) would not end it.
 */
static void sleep_open(pTHX_ struct pollfd *fd, nfds_t n, const struct timespec *limit, const sigset_t *open)
{
    NV left = limit ? (NV)limit->tv_sec * 1e3 + (NV)limit->tv_nsec / 1e6 : 1e12;
    for (;;) {
        int ms = left < SLICE_MS ? (int)left + (left > (int)left) : SLICE_MS;
        if (PL_sig_pending || knocks(open) || poll(fd, n, ms) != 0 || (left -= ms) <= 0)
            return;
    }
}
#else
static void sleep_open(pTHX_ struct pollfd *fd, nfds_t n, const struct timespec *limit, const sigset_t *open)
{
    PERL_UNUSED_CONTEXT;
    ppoll(fd, n, limit, open);
}
#endif

void sirius_poll(pTHX_ AV *descriptors, AV *events, NV seconds, AV *signals)
{
    struct timespec left, *limit = NULL;
    sigset_t closed, open;
    nfds_t n = (nfds_t)(av_len(descriptors) + 1);
    struct pollfd *fd;
    Newxz(fd, n + 1, struct pollfd);
    SAVEFREEPV(fd);
    for (nfds_t i = 0; i < n; i++) {
        fd[i].fd = (int)SvIV(*av_fetch(descriptors, (SSize_t)i, 1));
        fd[i].events = (short)SvIV(*av_fetch(events, (SSize_t)i, 1));
    }
    if (seconds >= 0) {
        seconds = seconds < 1e9 ? seconds : 1e9;
        left.tv_sec = (time_t)seconds;
        left.tv_nsec = (long)((seconds - (NV)left.tv_sec) * 1e9);
        limit = &left;
    }
    pthread_sigmask(SIG_BLOCK, NULL, &closed);
    open = closed;
    open_mask(aTHX_ signals, &open);
    sleep_open(aTHX_ fd, n, limit, &open);
    pthread_sigmask(SIG_SETMASK, &open, NULL); /* if a descriptor is ready, this may have let no signal in */
    pthread_sigmask(SIG_SETMASK, &closed, NULL);
    PERL_ASYNC_CHECK();
}
