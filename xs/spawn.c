/*
 * spawn: starts a program in a child. Not by fork, which would copy the page tables of a process that may
 * hold an application of gigabytes: posix_spawn borrows them until the exec (clone(2), CLONE_VM and
 * CLONE_VFORK).
 */
#include "spawn.h"

#include "net/beside.h"
#include "net/needed.h"

#include <fcntl.h>
#include <spawn.h>

/*
 * Clears the close-on-exec flags of the descriptors, or (`back`) restores them. This process has one thread,
 * so no other program is started in between.
 */
static void lend(pTHX_ AV *descriptors, int *flags, bool back)
{
    for (SSize_t i = 0; i <= av_len(descriptors); i++) {
        int fd = (int)SvIV(*av_fetch(descriptors, i, 1));
        if (!back)
            flags[i] = fcntl(fd, F_GETFD);
        if (flags[i] >= 0)
            fcntl(fd, F_SETFD, back ? flags[i] : flags[i] & ~FD_CLOEXEC);
    }
}

static int spawn(const char *path, char **argv, pid_t *pid)
{
    posix_spawnattr_t attr;
    sigset_t none, all;
    int err = posix_spawnattr_init(&attr);
    if (err)
        return err;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    err = posix_spawn(pid, path, NULL, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    return err;
}

/* The words as exec takes them; freed with the scope of the caller. */
static char **argv_of(pTHX_ AV *words)
{
    char **argv;
    Newxz(argv, av_len(words) + 2, char *);
    SAVEFREEPV(argv);
    for (SSize_t i = 0; i <= av_len(words); i++)
        argv[i] = SvPV_nolen(*av_fetch(words, i, 1));
    return argv;
}

int sirius_spawn(pTHX_ const char *path, AV *words, AV *descriptors)
{
    pid_t pid = -1;
    char **argv = argv_of(aTHX_ words);
    int *flags;
    Newxz(flags, av_len(descriptors) + 1, int);
    SAVEFREEPV(flags);
    lend(aTHX_ descriptors, flags, false);
    int err = spawn(path, argv, &pid);
    lend(aTHX_ descriptors, flags, true);
    if (err)
        croak("%s: %s\n", path, Strerror(err));
    return (int)pid;
}

int sirius_spawn_beside(pTHX_ const char *path, AV *words, AV *descriptors, int *pidfd)
{
    pid_t pid;
    char **argv = argv_of(aTHX_ words);
    int *fds, n = (int)av_len(descriptors) + 1;
    Newx(fds, n + 1, int);
    SAVEFREEPV(fds);
    for (int i = 0; i < n; i++)
        fds[i] = (int)SvIV(*av_fetch(descriptors, i, 1));
    int err = sr_beside_start(path, argv, fds, n, &pid, pidfd);
    const char *missing = err ? sr_needed_missing(&err) : NULL;
    if (missing)
        croak("sirius: cannot start %s: %s(2) fails: %s. Linux 5.3 is needed, and in a container a filter of "
              "system calls (seccomp) that allows it\n",
              path, missing, Strerror(err));
    if (err)
        croak("%s: %s\n", path, Strerror(err));
    return (int)pid;
}
