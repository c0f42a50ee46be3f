#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_TMPFILE, accept4 */
#endif
#include "tempfile.h"

#include "descriptors.h"
#include "nosignal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int sr_tempfile_open(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return sr_descriptors_above(fd);
    char path[4096]; /* for file systems without O_TMPFILE (overlayfs before Linux 6.3, NFS) */
    if (snprintf(path, sizeof path, "%s/sirius-XXXXXX", dir) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
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
