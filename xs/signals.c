/*
 * signals: between perl and the handlers of signals, so that one that comes while a worker sleeps wakes it,
 * and none jumps out of the server.
 */
#include "signals.h"

#include "sirius.h"
#include "turn.h"

#include <signal.h>

/*
 * A signal that arrives between perl's last check of PL_sig_pending and the sleep of a worker would have to
 * wait for the next request. So perl's C handler is wrapped: once it has noted the signal, the worker is
 * woken.
 */
static Sighandler_t perl_handler;

/*
 * The handlers of a worker restart the system call they interrupt (SA_RESTART), so that a reload does not
 * make flock or sysread of the application fail. Perl then calls them when the system call is over.
 */
static void wake(void)
{
    if (sirius_current)
        sr_worker_wake(&sirius_current->worker);
}

/*
 * USR2 asks where this worker is. Perl answers when C code has returned to it, which may be never; until then
 * this place is reported. The function only copies, as nothing else is safe in a signal handler.
 */
static void tell_place(int sig)
{
    const sirius *s = sirius_current;
    if (sig != SIGUSR2 || !s || sirius_forked(s))
        return;
    dTHX;
#ifdef MULTIPLICITY
    if (aTHX != s->owner)
        return;
#endif
    const char *file = PL_curcop ? CopFILE(PL_curcop) : NULL;
    if (file)
        sr_row_place_tell(s->row.of, file, (uint32_t)CopLINE(PL_curcop));
}

/*
 * Handlers of signals have to wait: code runs that they must not jump out of, or the server writes a line of
 * its own log.
 */
static bool busy(const sirius *s)
{
    return (s->inside.now || s->inside.logging) && !sirius_forked(s);
}

/*
 * Perl is on the way into code of the application, or out of it: the eval around that is not there yet, or
 * not any more. A handler that dies now would jump over the server.
 */
static bool crossing(pTHX_ const sirius *s)
{
#ifdef MULTIPLICITY
    if (aTHX != s->owner) /* also a thread that is not perl's */
        return false;
#endif
    return s->inside.outer && !sirius_forked(s) &&
           (PL_top_env == s->inside.outer || (PL_curstackinfo == s->inside.frame && cxstack_ix < 0));
}

/*
 * When 120 signals are pending, perl dies in its C handler, wherever it is. The server must not be jumped out
 * of, so the count is reset while it is at work; perl uses the count for nothing else.
 */
static void forbear(void)
{
    if (!sirius_current || !busy(sirius_current))
        return;
    dTHX;
#ifdef MULTIPLICITY
    if (aTHX != sirius_current->owner)
        return;
#endif
    if (PL_sig_pending > 1)
        PL_sig_pending = 1;
}

#if defined(PERL_USE_3ARG_SIGHANDLER) || (PERL_VERSION < 32 && defined(HAS_SIGACTION) && defined(SA_SIGINFO))
static Signal_t waking_handler(int sig, siginfo_t *info, void *context)
{
    forbear();
    perl_handler(sig, info, context);
    tell_place(sig);
    wake();
}
#else
static Signal_t waking_handler(int sig)
{
    forbear();
    perl_handler(sig);
    tell_place(sig);
    wake();
}
#endif

/*
 * Perl does not defer a handler that was set by POSIX::sigaction: it runs in the middle of C code. One that
 * dies, as DBI's manual suggests for time limits, would jump out of the server in the middle of a reply. So
 * while the server is at work, such handlers wait like all others; a blocked write lets them run. Faults
 * can't wait.
 */
static bool deferred(int sig)
{
    const sirius *s = sirius_current;
    if (!s || sig == SIGSEGV || sig == SIGBUS || sig == SIGILL || sig == SIGFPE)
        return false;
    dTHX;
    if (!busy(s) && !crossing(aTHX_ s))
        return false;
    PL_psig_pend[sig]++;
    PL_sig_pending = 1;
    wake();
    return true;
}

static Sighandler_t perl_unsafe;
#if PERL_VERSION >= 32
static Sighandler1_t perl_handler1, perl_unsafe1;
static Sighandler3_t perl_handler3, perl_unsafe3;

static Signal_t waking_handler1(int sig)
{
    forbear();
    perl_handler1(sig);
    wake();
}

static Signal_t waking_handler3(int sig, Siginfo_t *info, void *context)
{
    forbear();
    perl_handler3(sig, info, context);
    wake();
}

static Signal_t deferring_handler1(int sig)
{
    if (!deferred(sig))
        perl_unsafe1(sig);
}

static Signal_t deferring_handler3(int sig, Siginfo_t *info, void *context)
{
    if (!deferred(sig))
        perl_unsafe3(sig, info, context);
}
#endif
#if defined(PERL_USE_3ARG_SIGHANDLER) || (PERL_VERSION < 32 && defined(HAS_SIGACTION) && defined(SA_SIGINFO))
static Signal_t deferring_handler(int sig, siginfo_t *info, void *context)
{
    if (!deferred(sig))
        perl_unsafe(sig, info, context);
}
#else
static Signal_t deferring_handler(int sig)
{
    if (!deferred(sig))
        perl_unsafe(sig);
}
#endif

/*
 * Under plackup the application is loaded before this module. The handlers it has installed by then go
 * through perl's own functions: their signals would not wake the worker, or not wait for its code.
 */
static void adopt(void)
{
    const struct {
        void (*perls)(void), (*ours)(void);
    } pairs[] = {
        {(void (*)(void))perl_handler, (void (*)(void))waking_handler},
        {(void (*)(void))perl_unsafe, (void (*)(void))deferring_handler},
#if PERL_VERSION >= 32
        {(void (*)(void))perl_handler1, (void (*)(void))waking_handler1},
        {(void (*)(void))perl_handler3, (void (*)(void))waking_handler3},
        {(void (*)(void))perl_unsafe1, (void (*)(void))deferring_handler1},
        {(void (*)(void))perl_unsafe3, (void (*)(void))deferring_handler3},
#endif
    };
    for (int sig = 1; sig < NSIG; sig++) {
        struct sigaction now;
        if (sigaction(sig, NULL, &now) != 0)
            continue;
        void (*is)(void) =
            now.sa_flags & SA_SIGINFO ? (void (*)(void))now.sa_sigaction : (void (*)(void))now.sa_handler;
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
            if (is != pairs[i].perls)
                continue;
            if (now.sa_flags & SA_SIGINFO)
                now.sa_sigaction = (void (*)(int, siginfo_t *, void *))pairs[i].ours;
            else
                now.sa_handler = (void (*)(int))pairs[i].ours;
            sigaction(sig, &now, NULL);
            break;
        }
    }
}

void sirius_signals_boot(pTHX)
{
    perl_handler = PL_csighandlerp;
    PL_csighandlerp = waking_handler;
    perl_unsafe = PL_sighandlerp;
    PL_sighandlerp = deferring_handler;
#if PERL_VERSION >= 32
    perl_handler1 = PL_csighandler1p;
    PL_csighandler1p = waking_handler1;
    perl_handler3 = PL_csighandler3p;
    PL_csighandler3p = waking_handler3;
    perl_unsafe1 = PL_sighandler1p;
    PL_sighandler1p = deferring_handler1;
    perl_unsafe3 = PL_sighandler3p;
    PL_sighandler3p = deferring_handler3;
#endif
    adopt();
}
