#ifndef SR_MEMORY_H
#define SR_MEMORY_H
/*
 * memory: memory that processes share by a descriptor. Its size can't be changed: a process that made it
 * shorter would kill every other that touches the missing part.
 *
 * Owner: the caller, of the mapping (munmap) and of the descriptor. Failure: NULL with errno.
 */
#include <stdbool.h>
#include <stddef.h>

#ifdef SR_PORTABLE
#define SR_MEMORY_CALLS "a file in /dev/shm or /tmp, mmap" /* what may have failed, for a message */
#else
#define SR_MEMORY_CALLS "memfd_create, mmap"
#endif

/* Makes `bytes` bytes of zeros. The name is for /proc/PID/maps. */
void *sr_memory_new(const char *name, size_t bytes, int *fd);

/*
 * Afterwards nobody can change the size, or add another seal: a seal against writing would stop all who
 * write. `ours`: only mappings that exist already can be written (Linux 5.1; older kernels have no such seal,
 * and apply the rest). A portable build knows no seals: there each process can do all that.
 */
void sr_memory_seal(int fd, bool ours);

#endif
