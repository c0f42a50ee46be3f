#ifdef SR_HTTP2

#include "reserve.h"

#include <malloc.h>
#include <stdlib.h>

enum {
    SMALL = 4096,        /* its queues and tables; frames and heads are larger, and their lack does no harm */
    RESERVE = 64 * 1024, /* untouched, it costs address space only */
    ALIGNED = 16,
};

/* Taken from the front on; all of it is free again when no block is in use. */
static _Alignas(ALIGNED) char reserve[RESERVE];
static size_t used, blocks;

static bool is_reserved(const void *at)
{
    return (const char *)at >= reserve && (const char *)at < reserve + RESERVE;
}

static void *spare(sr_session *s, size_t n)
{
    size_t need = (n + ALIGNED - 1) / ALIGNED * ALIGNED;
    if (n > SMALL || need > RESERVE - used)
        return NULL;
    void *at = reserve + used;
    used += need;
    blocks++;
    s->over = true;
    sr_session_due(s);
    return at;
}

static void *get(size_t n, void *s)
{
    void *at = malloc(n);
    return at || !n ? at : spare(s, n);
}

static void *get_zeroed(size_t n, size_t each, void *s)
{
    void *at = calloc(n, each);
    if (at || !n || !each || n > SMALL || each > SMALL || !(at = spare(s, n * each)))
        return at;
    return memset(at, 0, n * each);
}

static void put(void *at, void *s)
{
    (void)s;
    if (!is_reserved(at)) {
        free(at);
        return;
    }
    if (!--blocks)
        used = 0;
}

static void *resize(void *at, size_t n, void *s)
{
    bool reserved = is_reserved(at);
    void *to = reserved ? malloc(n) : realloc(at, n);
    if (to && !reserved)
        return to;
    if (!to && !(to = spare(s, n)))
        return NULL;
    /* what lies behind a block of the reserve can be read as well */
    size_t had = !at ? 0 : reserved ? (size_t)(reserve + used - (char *)at) : malloc_usable_size(at);
    if (had)
        memmove(to, at, had < n ? had : n);
    put(at, s);
    return to;
}

nghttp2_mem sr_reserve_mem(sr_session *s)
{
    return (nghttp2_mem){s, get, put, get_zeroed, resize};
}

#endif
