#include "hold.h"

/* Those that perl has taken already are not run now: perl unblocks the signal of a handler that has died. */
void sirius_hold(pTHX_ sirius_inside *i)
{
    static const int own[] = {SIGSEGV, SIGBUS,  SIGILL,  SIGFPE,  SIGABRT, SIGHUP,  SIGINT,
                              SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGPIPE, SIGTTIN, SIGTTOU};
    sigset_t these;
    sigfillset(&these);
    for (size_t k = 0; k < sizeof own / sizeof own[0]; k++)
        sigdelset(&these, own[k]);
    i->held = pthread_sigmask(SIG_BLOCK, &these, &i->mask) == 0;
    i->pending = PL_sig_pending != 0;
    if (i->pending)
        PL_sig_pending = 0;
}

void sirius_let_go(pTHX_ sirius_inside *i)
{
    if (i->pending)
        PL_sig_pending = 1;
    i->pending = false;
    if (i->held)
        pthread_sigmask(SIG_SETMASK, &i->mask, NULL);
    i->held = false;
}
