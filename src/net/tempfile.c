#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE, O_PATH */
#endif
#include "tempfile.h"

#include "../base/cursor.h"
#include "../base/random.h"
#include "descriptors.h"
#include "nosignal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* neither is on all systems: a name that lives for an instant, and a folder that can be read */
#ifdef SR_PORTABLE
#undef O_PATH
#undef O_TMPFILE
#define O_PATH O_RDONLY
#define O_TMPFILE 0
#endif

enum { PATH_ROOM = 4096, TRIES = 8, BATCH = 16 };

static int folder = -1; /* of sr_tempfile_stay, or */
static int missing;     /* why there is none */

int sr_tempfile_stay(const char *dir)
{
    if (folder < 0)
        missing = (folder = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0 ? errno : 0;
    return folder;
}

/* For file systems without O_TMPFILE (overlayfs before Linux 6.3, NFS). */
static int open_named(int at, const char *dir)
{
    unsigned long long random;
    char path[PATH_ROOM];
    for (int i = 0; i < TRIES; i++) {
        if (!sr_random(&random, sizeof random))
            return -1;
        if (snprintf(path, sizeof path, "%s/sirius-%016llx", dir, random) >= (int)sizeof path) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = openat(at, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0)
            unlinkat(at, path, 0);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

int sr_tempfile_open(const char *dir)
{
    struct stat st;
    int at = folder < 0 ? AT_FDCWD : folder;
    if (missing) {
        errno = missing;
        return -1;
    }
    if (folder >= 0) {
        dir = ".";
        /* some file systems make files without a name in a folder that was removed */
        if (fstat(folder, &st) == 0 && st.st_nlink == 0) {
            errno = ENOENT;
            return -1;
        }
    }
    int fd = O_TMPFILE ? openat(at, dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    if (fd < 0 && (!O_TMPFILE || errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
        fd = open_named(at, dir);
    return sr_descriptors_above(fd);
}

static int write_all(int fd, const char *at, size_t len)
{
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                errno = ENOSPC;
            return -1;
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int sr_tempfile_write(int fd, const char *at, size_t len)
{
    sr_nosignal mask;
    sr_nosignal_begin(&mask);
    int err = write_all(fd, at, len);
    sr_nosignal_end(&mask, err < 0 ? errno : 0);
    return err;
}

ssize_t sr_tempfile_read(int fd, char *at, size_t len, off_t offset)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = pread(fd, at + got, len - got, offset + (off_t)got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

/* Fills `batch` with what follows. Returns how many pieces there are. */
static int batch_of(struct iovec *batch, sr_cursor c)
{
    int used = 0;
    while (c.n > 0 && used < BATCH) {
        sr_bytes here = sr_cursor_here(&c);
        if (here.len)
            batch[used++] = (struct iovec){(char *)(uintptr_t)here.at, here.len};
        sr_cursor_skip(&c, here.len);
    }
    return used;
}

static int put_all(int fd, sr_cursor c, off_t offset)
{
    struct iovec batch[BATCH];
    int used;
    while ((used = batch_of(batch, c)) > 0) {
        ssize_t done = pwritev(fd, batch, used, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0) {
            if (done == 0)
                errno = ENOSPC;
            return -1;
        }
        sr_cursor_skip(&c, (size_t)done);
        offset += done;
    }
    return 0;
}

int sr_tempfile_put(int fd, const struct iovec *iov, int n, size_t skip, off_t offset)
{
    sr_nosignal mask;
    sr_cursor c = {iov, n, 0};
    sr_cursor_skip(&c, skip);
    sr_nosignal_begin(&mask);
    int err = put_all(fd, c, offset);
    sr_nosignal_end(&mask, err < 0 ? errno : 0);
    return err;
}
