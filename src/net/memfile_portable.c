#ifdef SR_PORTABLE
#include "memfile.h"

#include "../base/random.h"
#include "descriptors.h"
#include "tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* In memory where there is such a folder. Else the file is written to a disk now and then. */
static const char *const folders[] = {"/dev/shm", "/tmp"};

int sr_memfile_new(const char *name)
{
    unsigned long long number;
    char path[256];
    int fd = -1;
    if (!sr_random(&number, sizeof number))
        return -1;
    for (size_t i = 0; fd < 0 && i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s/memfd:%s.%016llx", folders[i], name,
                 number); /* as /proc shows others */
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (fd >= 0)
        unlink(path);
    return sr_descriptors_above(fd);
}

int sr_memfile(const char *name, const struct iovec *iov, int n, bool sealed)
{
    int fd = sr_memfile_new(name);
    (void)sealed;
    if (fd < 0 || sr_tempfile_put(fd, iov, n, 0, 0) == 0)
        return fd;
    int err = errno;
    close(fd);
    errno = err;
    return -1;
}
#endif
