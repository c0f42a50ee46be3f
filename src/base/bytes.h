#ifndef SR_BYTES_H
#define SR_BYTES_H
/*
 * bytes: a run of bytes in memory that somebody else owns. It is not NUL-terminated, and valid as long as
 * that memory. No allocation, no I/O; any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct sr_bytes {
    const char *at; /* may be NULL only when len is 0 */
    size_t len;
} sr_bytes;

#define SR_BYTES(literal) ((sr_bytes){(literal), sizeof(literal) - 1})

static inline sr_bytes sr_bytes_of(const char *at, size_t len)
{
    return (sr_bytes){at, len};
}

static inline bool sr_bytes_equal(sr_bytes a, sr_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* The last such byte; NULL: there is none. As memrchr, which not all systems have. */
static inline const char *sr_bytes_last(sr_bytes b, char wanted)
{
    while (b.len > 0)
        if (b.at[--b.len] == wanted)
            return b.at + b.len;
    return NULL;
}

/* ASCII lower case of one byte; bytes outside A-Z are returned as they are. */
static inline unsigned char sr_lower(unsigned char c)
{
    return (unsigned)(c - 'A') < 26U ? (unsigned char)(c | 0x20) : c;
}

/* Equal without regard to ASCII case, as field names and most tokens are compared (RFC 9110 5.1). */
static inline bool sr_bytes_equal_nocase(sr_bytes a, sr_bytes b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (sr_lower((unsigned char)a.at[i]) != sr_lower((unsigned char)b.at[i]))
            return false;
    return true;
}

#endif
