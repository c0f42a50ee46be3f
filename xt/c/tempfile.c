/* tempfile: unlinked files, also where the file system can't make one without a name */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/tempfile.h"

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int no_tmpfile; /* errno of O_TMPFILE; 0: it works */

/* Instead of the C library's */
int openat(int at, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = va_arg(args, mode_t);
    va_end(args);
    if (no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = no_tmpfile;
        return -1;
    }
    return (int)syscall(SYS_openat, at, path, flags, mode);
}

static void works(const char *dir, const char *name)
{
    struct stat st;
    char back[6] = "";
    int fd = sr_tempfile_open(dir);
    ok(fd >= 0 && fstat(fd, &st) == 0, "%s: a file", name);
    ok(st.st_nlink == 0 && (st.st_mode & 0777) == 0600, "without a name, for nobody else");
    ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "which an exec closes");
    is_int(sr_tempfile_write(fd, "hello", 5), 0, "written");
    ok(sr_tempfile_read(fd, back, 5, 0) == 5 && strcmp(back, "hello") == 0, "and read");
    ok(sr_tempfile_read(fd, back, 5, 2) == 3 && strncmp(back, "llo", 3) == 0,
       "to its end, if that comes first");
    close(fd);
    ok(rmdir(dir) == 0 && mkdir(dir, 0700) == 0, "nothing is left in its folder");
}

static void fails(const char *dir, int error, const char *name)
{
    ok(sr_tempfile_open(dir) == -1 && errno == error, "%s", name);
}

/* The signal of RLIMIT_FSIZE would end the process */
static void limited(void)
{
    struct rlimit before, limit;
    char some[200] = {0};
    int fd = sr_tempfile_open("/tmp");
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){.rlim_cur = 100, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    int got = sr_tempfile_write(fd, some, sizeof some), error = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    ok(got == -1 && error == EFBIG, "more than a file may have");
    close(fd);
}

/* Changes all that comes after it */
static void stays(void)
{
    char dir[] = "/tmp/sirius-c-XXXXXX";
    if (!mkdtemp(dir))
        return;
    ok(sr_tempfile_stay(dir) >= 0, "a folder to stay in");
    for (no_tmpfile = 0; no_tmpfile >= 0; no_tmpfile = no_tmpfile ? -1 : EOPNOTSUPP) {
        const char *how = no_tmpfile ? "by name" : "as the system can";
        int fd = sr_tempfile_open("/proc/nonexistent");
        struct stat st;
        ok(fd >= 0 && fstat(fd, &st) == 0 && st.st_nlink == 0, "a file in it, whatever the path is, %s", how);
        ok(fcntl(fd, F_GETFD) & FD_CLOEXEC, "which an exec closes");
        close(fd);
    }
    is_int(rmdir(dir), 0, "nothing is left there");
    for (no_tmpfile = 0; no_tmpfile >= 0; no_tmpfile = no_tmpfile ? -1 : EOPNOTSUPP)
        fails("/tmp", ENOENT, no_tmpfile ? "nor by name" : "it was removed");
}

int main(void)
{
    char dir[] = "/tmp/sirius-c-XXXXXX", deep[5000];
    if (!mkdtemp(dir))
        return 1;
    memset(deep, '/', sizeof deep);
    memcpy(deep, dir, strlen(dir));
    deep[sizeof deep - 1] = '\0';
    works(dir, "as the system can");
    no_tmpfile = EOPNOTSUPP;
    works(dir, "by name");
    no_tmpfile = EISDIR;
    works(dir, "by name, in an old kernel");
    fails("/proc/nonexistent/folder", ENOENT, "no such folder, by name");
    fails(deep, ENAMETOOLONG, "a path that is too long");
    no_tmpfile = EMFILE;
    if (on_linux("no descriptor: not tried again", "O_TMPFILE, whose place a name takes elsewhere"))
        fails(dir, EMFILE, "no descriptor: not tried again");
    no_tmpfile = 0;
    fails("/proc/nonexistent/folder", ENOENT, "no such folder");
    rmdir(dir);

    int full = open("/dev/full", O_WRONLY, 0);
    ok(full < 0 || (sr_tempfile_write(full, "x", 1) == -1 && errno == ENOSPC), "a full disk");
    is_int(sr_tempfile_write(full, "", 0), 0, "nothing is written always");
    is_int(sr_tempfile_write(-1, "x", 1), -1, "to no file");
    is_int(sr_tempfile_read(-1, deep, 1, 0), -1, "and nothing can be read from none");
    limited();
    stays();
    return done_testing();
}
