#ifndef SR_PORTABLE
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "memfile.h"

#include "descriptors.h"
#include "nosignal.h"
#include "tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int sr_memfile_zeros(const char *name, size_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    sr_nosignal mask;
    sr_nosignal_begin(&mask); /* RLIMIT_FSIZE limits files in memory as well */
    bool sized = fd >= 0 && ftruncate(fd, (off_t)bytes) == 0;
    sr_nosignal_end(&mask, sized ? 0 : errno);
    return sized ? fd : sr_descriptors_failed(fd);
}

int sr_memfile(const char *name, const struct iovec *iov, int n, bool sealed)
{
    int fd = memfd_create(name, MFD_CLOEXEC | (sealed ? MFD_ALLOW_SEALING : 0));
    if (fd >= 0 && sr_tempfile_put(fd, iov, n, 0, 0) == 0 &&
        (!sealed || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0))
        return fd;
    return sr_descriptors_failed(fd);
}
#endif
