#ifndef FUZZ_MEMORY_H
#define FUZZ_MEMORY_H
/*
 * memory: allocations that fail when the program says so. The calls below stand before those of the C
 * library, or of the address sanitizer, for libraries of others as well.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Called before the sanitizers are ready */
#define FUZZ_MEMORY_PLAIN __attribute__((no_sanitize_address, no_sanitize_thread, no_sanitize("undefined")))

static struct {
    bool on;      /* allocations are counted, and one may fail */
    long count;   /* so many were tried */
    long fails;   /* that with this number does; 0: none */
    bool for_all; /* and all that follow */
    long failed;  /* so many have */
} fuzz_memory;

FUZZ_MEMORY_PLAIN static bool fuzz_memory_fails(void)
{
    if (!fuzz_memory.on)
        return false;
    fuzz_memory.count++;
    bool fails = fuzz_memory.fails && (fuzz_memory.count == fuzz_memory.fails ||
                                       (fuzz_memory.for_all && fuzz_memory.count > fuzz_memory.fails));
    if (!fails)
        return false;
    fuzz_memory.failed++;
    errno = ENOMEM;
    return true;
}

/* From now on, until fuzz_memory_enough, that with this number fails, and perhaps all behind it. */
static inline void fuzz_memory_short(long fails, bool for_all)
{
    fuzz_memory.on = true;
    fuzz_memory.count = fuzz_memory.failed = 0;
    fuzz_memory.fails = fails;
    fuzz_memory.for_all = for_all;
}

static inline void fuzz_memory_enough(void)
{
    fuzz_memory.on = false;
}

void *__interceptor_malloc(size_t) __attribute__((weak));
void *__interceptor_calloc(size_t, size_t) __attribute__((weak));
void *__interceptor_realloc(void *, size_t) __attribute__((weak));
void *__interceptor_aligned_alloc(size_t, size_t) __attribute__((weak));

#ifdef __GLIBC__
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
#else
#define FUZZ_MEMORY_REAL(type, name) ((type)(uintptr_t)dlsym(RTLD_NEXT, name))
#define __libc_malloc FUZZ_MEMORY_REAL(void *(*)(size_t), "malloc")
#define __libc_calloc FUZZ_MEMORY_REAL(void *(*)(size_t, size_t), "calloc")
#define __libc_realloc FUZZ_MEMORY_REAL(void *(*)(void *, size_t), "realloc")
#define __libc_memalign FUZZ_MEMORY_REAL(void *(*)(size_t, size_t), "aligned_alloc")
#endif

FUZZ_MEMORY_PLAIN void *malloc(size_t n)
{
    if (fuzz_memory_fails())
        return NULL;
    return __interceptor_malloc ? __interceptor_malloc(n) : __libc_malloc(n);
}

FUZZ_MEMORY_PLAIN void *calloc(size_t n, size_t each)
{
    if (fuzz_memory_fails())
        return NULL;
    return __interceptor_calloc ? __interceptor_calloc(n, each) : __libc_calloc(n, each);
}

FUZZ_MEMORY_PLAIN void *realloc(void *at, size_t n)
{
    if (fuzz_memory_fails())
        return NULL;
    return __interceptor_realloc ? __interceptor_realloc(at, n) : __libc_realloc(at, n);
}

/* musl refuses it where malloc alone was replaced */
FUZZ_MEMORY_PLAIN void *aligned_alloc(size_t align, size_t n)
{
    if (fuzz_memory_fails())
        return NULL;
    return __interceptor_aligned_alloc ? __interceptor_aligned_alloc(align, n) : __libc_memalign(align, n);
}

#endif
