#ifdef SR_HTTP2

#include "allocator.h"

#include <malloc.h>
#include <stdlib.h>

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SPOILS
#endif
#elif defined __SANITIZE_ADDRESS__
#define SPOILS
#endif

enum {
    SMALL = 4096,        /* its queues and tables; frames and heads are larger, and their lack does no harm */
    RESERVE = 64 * 1024, /* untouched, it costs address space only */
    ALIGNED = 16,
    FRAME_MIN =
        16 * 1024, /* what is as large, and asked for when a session begins, is the buffer for frames */
    FRAME_MAX = FRAME_MIN + 512, /* with a head, and padding */
};

/* Taken from the front on; all of it is free again when no block is in use. */
static _Alignas(ALIGNED) char reserve[RESERVE];
static size_t used, blocks;
static _Alignas(ALIGNED) char frame[FRAME_MAX];

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

static bool is_frame(const sr_session *s, size_t n)
{
    return !s->ng && n >= FRAME_MIN && n <= FRAME_MAX;
}

static void *get(size_t n, void *s)
{
    if (is_frame(s, n))
        return frame;
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
    if (at == frame)
        return;
    if (!is_reserved(at)) {
        free(at);
        return;
    }
    if (!--blocks)
        used = 0;
}

static void *resize(void *at, size_t n, void *s)
{
    if (!at && is_frame(s, n))
        return frame;
    if (at == frame) /* no frame is larger */
        return NULL;
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

nghttp2_mem sr_allocator(sr_session *s)
{
    return (nghttp2_mem){s, get, put, get_zeroed, resize};
}

void sr_allocator_copied(void)
{
#ifdef SPOILS
    memset(frame, 0xa5, sizeof frame);
#endif
}

#endif
