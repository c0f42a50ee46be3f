/*
 * loading: watches over the loading of the application in the process that was started. There is no
 * supervisor yet, and the code that is loaded may block in C, or have all signals blocked or ignored. So a
 * thread that never runs Perl says after a while that the application is still being loaded, and ends the
 * process when --load-timeout is over. The thread ends with the loading.
 *
 * Signals meanwhile: a stop signal ends the process, with a line in the log. That holds for PID 1 of a
 * container too, to which the kernel delivers no signal without a handler. Other signals for the supervisor
 * are noted for it. Handlers of the application take precedence.
 */
#include "loading.h"

#include "base/clock.h"
#include "place.h"
#include "share/futex.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int STOPS[] = {SIGINT, SIGQUIT, SIGTERM};
static const int NOTED[] = {SIGHUP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2};

static struct {
    pid_t pid; /* the process that loads; 0: none does */
    pthread_t thread;
    bool watched;          /* the thread was started */
    _Atomic uint32_t over; /* 0, or 1; the thread sleeps on it */
    double limit, soon;
    int64_t began; /* as sr_clock_monotonic */
    int stopped_status;
    volatile sig_atomic_t noted[NSIG];
    struct { /* of each noted signal; written by its handler only, in which all signals are blocked */
        pid_t pid;
        uid_t uid;
        int code;
    } sender[NSIG];
#ifdef MULTIPLICITY
    PerlInterpreter *perl;
#endif
} loading;

/* Writes a line, which is shorter than PIPE_BUF. Gives up if nobody reads the pipe. */
static void say(const char *text, size_t len)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&out, 1, 1000) > 0 && out.revents & POLLOUT) {
        ssize_t n = write(STDERR_FILENO, text, len);
        PERL_UNUSED_VAR(n);
    }
}

static bool wait_until(double seconds)
{
    int64_t until = loading.began + (int64_t)((seconds < 1e9 ? seconds : 1e9) * 1e9), left;
    while (!atomic_load(&loading.over) && (left = until - sr_clock_monotonic()) > 0)
        sr_futex_wait(&loading.over, 0, left);
    return atomic_load(&loading.over);
}

/*
 * Where perl is. Reads it in a way that can't crash while perl goes on. '' if the kernel does not permit it.
 */
static void say_where(char *to, size_t cap)
{
    char file[1024];
    UV line;
#ifdef MULTIPLICITY
    PerlInterpreter *my_perl = loading.perl;
#endif
    to[0] = 0;
    if (sirius_place_copy(aTHX_ loading.pid, file, sizeof file, &line))
        snprintf(to, cap, ", at %s line %lu", file, (unsigned long)line);
}

static void *watch(void *unused)
{
    char where[1100], text[1400];
    PERL_UNUSED_VAR(unused);
    if (loading.limit <= 0 || loading.soon < loading.limit) {
        if (wait_until(loading.soon))
            return NULL;
        char limit[64] = "there is no limit (--load-timeout 0)";
        if (loading.limit > 0)
            snprintf(limit, sizeof limit, "the limit is %g s (--load-timeout)", loading.limit);
        say_where(where, sizeof where);
        say(text, (size_t)snprintf(text, sizeof text,
                                   "[sirius %ld] still loading the application after %g s%s; %s\n",
                                   (long)loading.pid, loading.soon, where, limit));
    }
    if (wait_until(loading.limit > 0 ? loading.limit : 1e9))
        return NULL;
    say_where(where, sizeof where);
    say(text, (size_t)snprintf(text, sizeof text,
                               "[sirius %ld] error: the application was not loaded within %g s "
                               "(--load-timeout)%s; the server cannot start\n",
                               (long)loading.pid, loading.limit, where));
    _exit(1);
}

/* A child that the application has forked handles the signal as if this module were not there. */
static bool is_child(int sig)
{
    if (loading.pid == getpid())
        return false;
    signal(sig, SIG_DFL);
    raise(sig); /* takes effect when this handler returns */
    return true;
}

static void note(int sig, siginfo_t *info, void *context)
{
    PERL_UNUSED_VAR(context);
    if (is_child(sig))
        return;
    loading.sender[sig].pid = info->si_pid;
    loading.sender[sig].uid = info->si_uid;
    loading.sender[sig].code = info->si_code;
    loading.noted[sig] = 1;
}

/*
 * Of a signal without a PID: whether the kernel itself has sent it, as for Ctrl-C. On macOS nobody else is
 * without one.
 */
static bool of_kernel(const siginfo_t *info)
{
#ifdef SI_KERNEL
    return info->si_code == SI_KERNEL;
#else
    return info->si_pid == 0;
#endif
}

static void stop(int sig, siginfo_t *info, void *context)
{
    char text[160], pid[24], *at = pid + sizeof pid; /* snprintf is not safe in a signal handler */
    const char *name = sig == SIGINT ? "INT" : sig == SIGQUIT ? "QUIT" : "TERM";
    PERL_UNUSED_VAR(context);
    if (is_child(sig))
        return;
    for (long n = (long)loading.pid; n || at == pid + sizeof pid; n /= 10)
        *--at = (char)('0' + n % 10);
    size_t len = 0;
#define ADD(what, n) (memcpy(text + len, what, n), len += (n))
    ADD("[sirius ", 8);
    ADD(at, (size_t)(pid + sizeof pid - at));
    ADD("] stopped while loading the application: ", 41);
    ADD(name, strlen(name));
    if (info->si_pid > 0) {
        at = pid + sizeof pid;
        for (long n = (long)info->si_pid; n; n /= 10)
            *--at = (char)('0' + n % 10);
        ADD(" from PID ", 10);
        ADD(at, (size_t)(pid + sizeof pid - at));
    } else if (of_kernel(info)) {
        ADD(" from the terminal", 18);
    } else {
        ADD(" from outside this container", 28);
    }
    ADD("\n", 1);
#undef ADD
    say(text, len);
    _exit(loading.stopped_status);
}

/* Sets a handler, unless the signal was set to something else: nohup ignores HUP. */
static void heed(int sig, const struct sigaction *how)
{
    struct sigaction now;
    if (sigaction(sig, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        sigaction(sig, how, NULL);
}

/* Resets the signal, unless the application has set another handler. */
static void forget(int sig, void (*handler)(void))
{
    struct sigaction now;
    if (sigaction(sig, NULL, &now) == 0 &&
        (now.sa_flags & SA_SIGINFO ? (void (*)(void))now.sa_sigaction : (void (*)(void))now.sa_handler) ==
            handler)
        signal(sig, SIG_DFL);
}

void sirius_loading_begin(pTHX_ double limit, double soon, int stopped_status)
{
    struct sigaction how = {.sa_flags = SA_SIGINFO | SA_RESTART};
    pthread_attr_t attr;
    sigset_t all, before;
    memset((void *)loading.noted, 0, sizeof loading.noted);
#ifdef MULTIPLICITY
    loading.perl = aTHX;
#endif
    loading.pid = getpid();
    atomic_store(&loading.over, 0);
    loading.limit = limit;
    loading.soon = soon;
    loading.stopped_status = stopped_status;
    loading.began = sr_clock_monotonic();

    sigfillset(&how.sa_mask);
    how.sa_sigaction = stop;
    for (size_t i = 0; i < sizeof STOPS / sizeof *STOPS; i++)
        heed(STOPS[i], &how);
    how.sa_sigaction = note;
    for (size_t i = 0; i < sizeof NOTED / sizeof *NOTED; i++)
        heed(NOTED[i], &how);

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 128 << 10);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* for the thread, which inherits the mask */
    /* without the thread there is no time limit */
    loading.watched = pthread_create(&loading.thread, &attr, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

AV *sirius_loading_end(pTHX)
{
    AV *noted = newAV();
    if (!loading.pid)
        return noted;
    if (loading.pid == getpid() && loading.watched) { /* a forked child does not have the thread */
        atomic_store(&loading.over, 1);
        sr_futex_wake(&loading.over);
        pthread_join(loading.thread, NULL);
    }
    for (size_t i = 0; i < sizeof STOPS / sizeof *STOPS; i++)
        forget(STOPS[i], (void (*)(void))stop);
    for (size_t i = 0; i < sizeof NOTED / sizeof *NOTED; i++) {
        forget(NOTED[i], (void (*)(void))note);
        if (!loading.noted[NOTED[i]])
            continue;
        AV *one = newAV();
        av_push(one, newSViv(NOTED[i]));
        av_push(one, newSViv(loading.sender[NOTED[i]].pid));
        av_push(one, newSVuv(loading.sender[NOTED[i]].uid));
        av_push(one, newSViv(loading.sender[NOTED[i]].code));
        av_push(noted, newRV_noinc((SV *)one));
    }
    loading.watched = false;
    loading.pid = 0;
    return noted;
}
