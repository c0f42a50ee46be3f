#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_ADD_SEALS */
#endif
#include "memory.h"

#include "../net/descriptors.h"
#include "../net/memfile.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

void *sr_memory_new(const char *name, size_t bytes, int *fd)
{
    void *at = MAP_FAILED;
    *fd = sr_memfile_zeros(name, bytes);
    if (*fd >= 0)
        at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (at != MAP_FAILED)
        return at;
    *fd = sr_descriptors_failed(*fd);
    return NULL;
}

void sr_memory_seal(int fd, bool ours)
{
#ifdef SR_PORTABLE
    (void)fd;
    (void)ours;
#else
    if (ours)
        fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
#endif
}
