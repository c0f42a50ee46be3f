#ifndef SR_RANDOM_H
#define SR_RANDOM_H
/* random: bytes that nobody can guess, from the kernel. Any thread. */
#include <stdbool.h>
#include <stddef.h>

/* Fills up to 256 bytes. False: the kernel has none, with errno. */
bool sr_random(void *at, size_t len);

/* The same, but false where that would wait for the kernel, just after its start. */
bool sr_random_now(void *at, size_t len);

#endif
