#ifndef SR_FNV_H
#define SR_FNV_H
/*
 * fnv: FNV-1a, a hash of bytes that strangers may choose only if it starts from a secret. Pure; any thread.
 */
#include <stddef.h>
#include <stdint.h>

#define SR_FNV_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t sr_fnv(uint64_t from, const void *at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        from = (from ^ ((const unsigned char *)at)[i]) * UINT64_C(0x100000001b3);
    return from;
}

#endif
