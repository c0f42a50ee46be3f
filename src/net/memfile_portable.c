#ifdef SR_PORTABLE
#include "memfile.h"

#include "../base/random.h"
#include "descriptors.h"
#include "tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* In memory where there is such a folder with room. Else the file is written to a disk now and then. */
static const char *const folders[] = {"/dev/shm", "/tmp"};

enum { FOLDERS = sizeof folders / sizeof folders[0], CHUNK = 64 * 1024 };

static int new_in(const char *folder, const char *name)
{
    unsigned long long number;
    char path[256];
    if (!sr_random(&number, sizeof number))
        return -1;
    snprintf(path, sizeof path, "%s/memfd:%s.%016llx", folder, name, number); /* as /proc shows others */
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        unlink(path);
    return sr_descriptors_above(fd);
}

/*
 * Zeros are written, so that they are there: a page for which there is no room ends the process that touches
 * it, by SIGBUS
 */
static int put(int fd, const struct iovec *iov, int n, size_t zeros)
{
    static const char chunk[CHUNK];
    if (sr_tempfile_put(fd, iov, n, 0, 0) != 0)
        return -1;
    for (size_t at = 0; at < zeros; at += CHUNK) {
        struct iovec some = {(void *)(uintptr_t)chunk, zeros - at < CHUNK ? zeros - at : CHUNK};
        if (sr_tempfile_put(fd, &some, 1, 0, (off_t)at) != 0)
            return -1;
    }
    return 0;
}

static int make(const char *name, const struct iovec *iov, int n, size_t zeros)
{
    int err = 0;
    for (size_t i = 0; i < FOLDERS; i++) {
        int fd = new_in(folders[i], name);
        if (fd >= 0 && put(fd, iov, n, zeros) == 0)
            return fd;
        err = err == ENOSPC ? err : errno; /* which says best what to do */
        if (fd >= 0)
            close(fd);
    }
    errno = err;
    return -1;
}

int sr_memfile_zeros(const char *name, size_t bytes)
{
    return make(name, NULL, 0, bytes);
}

int sr_memfile(const char *name, const struct iovec *iov, int n, bool sealed)
{
    (void)sealed;
    return make(name, iov, n, 0);
}
#endif
