#ifndef SR_WIPE_H
#define SR_WIPE_H
/* wipe: overwrites secrets, also where nothing reads the memory any more. Any thread. */
#include <stddef.h>
#include <string.h>

static inline void sr_wipe(void *at, size_t len)
{
#ifdef __APPLE__ /* has no explicit_bzero */
    for (volatile char *to = at; len > 0; len--)
        *to++ = 0;
#else
    explicit_bzero(at, len);
#endif
}

#endif
