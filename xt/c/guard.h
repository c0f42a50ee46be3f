#ifndef GUARD_H
#define GUARD_H
/* guard: bytes that end where an unreadable page begins, so that reading one too many is a crash. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD_MAX = 1 << 20 };

/* One past the last byte that can be read; GUARD_MAX bytes before it are there. */
static inline char *guard_end(void)
{
    static char *end;
    if (!end) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *at = mmap(NULL, GUARD_MAX + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED || mprotect(at + GUARD_MAX, page, PROT_NONE) != 0)
            _exit(99);
        end = at + GUARD_MAX;
    }
    return end;
}

/* A copy of the bytes that ends there. The next call overwrites it. */
static inline const char *guarded(const char *at, size_t len)
{
    char *copy = guard_end() - len;
    if (len)
        memcpy(copy, at, len);
    return copy;
}

#endif
