/* memfile: files in memory that are made of pieces */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/memfile.h"

#include "net/tempfile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct iovec pieces[] = {{"one ", 4}, {NULL, 0}, {"two ", 4}, {"three", 5}};

static void made(bool sealed)
{
    const char *how = sealed ? "sealed" : "not sealed";
    char back[32] = "";
    int fd = sr_memfile("test", pieces, 4, sealed);
    ok(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC, "a file that an exec closes, %s", how);
    is_int(sr_tempfile_read(fd, back, sizeof back, 0), 13, "has all pieces");
    ok(strcmp(back, "one two three") == 0, "in their order");
    if (!sealed || on_linux("nobody may change it", "seals")) {
        is_int(pwrite(fd, "x", 1, 0) == 1, !sealed, "who may change it");
        is_int(ftruncate(fd, 100) == 0, !sealed, "or its length");
    }
    close(fd);
}

static void not_made(void)
{
    struct rlimit before, limit;
    int free = dup(0);
    close(free);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = (struct rlimit){.rlim_cur = 8, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    int fd = sr_memfile("test", pieces, 4, false), error = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    ok(fd == -1 && error == EFBIG, "more than a file may have");
    fd = dup(0);
    is_int(fd, free, "leaves no descriptor");
    close(fd);
}

int main(void)
{
    made(false);
    made(true);
    not_made();
    int fd = sr_memfile("test", NULL, 0, false);
    ok(fd >= 0 && lseek(fd, 0, SEEK_END) == 0, "one of nothing is empty");
    close(fd);
    return done_testing();
}
