#ifndef SR_MEMORY_H
#define SR_MEMORY_H
/*
 * memory: that processes share through a descriptor, zeroed and of a size that nobody can change: who could make it shorter
 * would kill everybody that touches what is missing.
 *
 * Owner: the caller of both the mapping (munmap) and the descriptor. Failure: NULL and errno.
 */
#include <stdbool.h>
#include <stddef.h>

void *sr_memory_new(const char *name, size_t bytes, int *fd);

/*
 * After this nobody can change its size, nor add another seal: one against writing would be as good as its end. `ours`: only
 * mappings that are there can be written (Linux 5.1; an older kernel has no such protection, and the rest holds).
 */
void sr_memory_seal(int fd, bool ours);

#endif
