/*
 * lease: who wants to write to a file waits until the lease on it is given back, and the holder hears of it
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/lease.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIGNAL = 43, PATIENCE = 30 /* seconds */ };

static bool told(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGNAL);
    return sigtimedwait(&set, NULL, &(struct timespec){.tv_sec = PATIENCE}) == SIGNAL;
}

/* Opens the file for writing in a child, which has no copy of the lease. Returns its PID. */
static pid_t writer(const char *path, int flags)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
            close(fd);
        _exit(open(path, O_WRONLY | flags) < 0);
    }
    return pid;
}

static bool waits(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == 0;
}

static bool gets_in(pid_t pid)
{
    int status;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void)
{
    if (!on_linux("all of it", "leases"))
        return done_testing();
    char path[] = "/tmp/sirius-lease-XXXXXX";
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGNAL);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int out = mkstemp(path), in = open(path, O_RDONLY | O_CLOEXEC);
    ok(write(out, "bytes", 5) == 5 && in >= 0, "a file");

    ok(sr_lease_needed(in), "one's own file can be changed");
    ok(sr_lease_needed(out), "a descriptor for writing, too");
    int other = open("/proc/version", O_RDONLY | O_CLOEXEC);
    ok(geteuid() == 0 || !sr_lease_needed(other), "not one of somebody else");
    close(other);

    errno = 0;
    ok(sr_lease_take(in, getpid(), SIGNAL) < 0 && errno == EAGAIN, "no lease while it is open for writing");
    close(out);
    errno = 0;
    ok(sr_lease_take(in, 0, SIGNAL) < 0 && errno == ESRCH, "nor without a holder");
    int lease = sr_lease_take(in, getpid(), SIGNAL);
    ok(lease > STDERR_FILENO && fcntl(lease, F_GETFD) & FD_CLOEXEC, "a lease");
    ok(sr_lease_holds(lease) && !sr_lease_holds(in), "belongs to a descriptor of its own");
    int second = sr_lease_take(in, getpid(), SIGNAL);
    ok(sr_lease_holds(second), "others may have one as well");
    close(second);

    pid_t pid = writer(path, 0);
    ok(told(), "its holder hears of a writer");
    ok(!sr_lease_holds(lease) && waits(pid), "which waits");
    close(lease);
    ok(gets_in(pid), "until the lease is given back");

    lease = sr_lease_take(in, getppid(), SIGNAL);
    int copy = dup(lease);
    close(lease);
    ok(sr_lease_claim(copy, SIGNAL), "the lease belongs to the process that has claimed it");
    pid = writer(path, O_TRUNC);
    ok(told(), "who hears of a writer");
    ok(!sr_lease_claim(copy, SIGNAL), "and can't claim it any more");
    close(copy);
    ok(gets_in(pid), "which gets in when the last copy is closed");

    lease = sr_lease_take(in, getpid(), SIGNAL);
    ok(unlink(path) == 0 && sr_lease_holds(lease), "a removal is not waited for");
    close(lease);
    ok(sr_lease_holds(lease = sr_lease_take(in, getpid(), SIGNAL)), "and the removed file can have a lease");
    is_int(sr_lease_give_back(lease), SR_LEASE_RETURNED, "a lease is given back");
    ok(!sr_lease_holds(lease), "and is none any more");
    is_int(sr_lease_give_back(lease), SR_LEASE_LOST, "as one that the kernel has taken away");
    FILE *told = fopen("/proc/sys/fs/lease-break-time", "r");
    int seconds = 45;
    ok(!told || fscanf(told, "%d", &seconds) == 1, "the kernel says how long it waits");
    if (told)
        fclose(told);
    is_int(sr_lease_patience(), seconds, "so many seconds");
    close(lease);
    close(in);
    return done_testing();
}
