/*
 * failures: what tempfile, scoreboard and descriptors do when the kernel says no. The calls below stand
 * before those of libc: each does what it should, but for the one that is to fail.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/descriptors.h"
#include "net/tempfile.h"
#include "share/scoreboard.h"

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    const char *call; /* NULL: none fails */
    int error;        /* 0: it returns 0 */
    int times;
} failing;

static void fail(const char *call, int error, int times)
{
    failing.call = call;
    failing.error = error;
    failing.times = times;
}

static bool fails(const char *call)
{
    if (!failing.call || strcmp(failing.call, call) != 0 || failing.times-- <= 0)
        return false;
    errno = failing.error;
    return true;
}

ssize_t write(int fd, const void *at, size_t len)
{
    return fails("write") ? failing.error ? -1 : 0 : syscall(SYS_write, fd, at, len);
}

int ftruncate(int fd, off_t size)
{
    return fails("ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t offset)
{
    return fails("pwritev") ? -1 : syscall(SYS_pwritev, fd, iov, n, offset, 0);
}

#ifdef __GLIBC__
typedef __rlimit_resource_t limit_kind;
#else
typedef int limit_kind;
#endif

int getrlimit(limit_kind what, struct rlimit *limit)
{
    return fails("getrlimit") ? -1 : (int)syscall(SYS_prlimit64, 0, what, NULL, limit);
}

int setrlimit(limit_kind what, const struct rlimit *limit)
{
    return fails("setrlimit") ? -1 : (int)syscall(SYS_prlimit64, 0, what, limit, NULL);
}

static int lowest(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

static void temporary_files(void)
{
    struct stat st;
    int fd = sr_tempfile_open("/tmp");
    fail("write", EINTR, 3);
    is_int(sr_tempfile_write(fd, "whole", 5), 0, "a write that is interrupted");
    ok(fstat(fd, &st) == 0 && st.st_size == 5, "is done once");
    fail("write", EIO, 1);
    ok(sr_tempfile_write(fd, "x", 1) < 0 && errno == EIO, "one that fails, fails");
    fail("write", 0, 1);
    ok(sr_tempfile_write(fd, "x", 1) < 0 && errno == ENOSPC, "so does one of nothing");
    close(fd);
}

/* What there is then is a guess, or what there was */
static void descriptors(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    fail("getrlimit", EFAULT, 1);
    is_int((long long)sr_descriptors_raise(), 1024, "how many descriptors is not known");
    fail("setrlimit", EPERM, 1);
    is_int((long long)sr_descriptors_raise(), (long long)limit.rlim_cur, "it may not be more");
    is_int((long long)sr_descriptors_raise(), (long long)limit.rlim_max, "all that may be");
    fail("getrlimit", EFAULT, 1);
    is_int(sr_descriptors_limit(), 1024, "nor how many there are");
}

static void memory(void)
{
    int before = lowest();
    fail(ON_LINUX ? "ftruncate" : "pwritev", ENOMEM, 2); /* a portable build tries two folders */
    ok(!sr_scoreboard_new(4, 0) && errno == ENOMEM, "a scoreboard without memory is none");
    is_int(lowest(), before, "and nothing of it stays open");
}

int main(void)
{
    descriptors();
    temporary_files();
    memory();
    return done_testing();
}
