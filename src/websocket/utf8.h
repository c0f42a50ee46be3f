#ifndef SR_UTF8_H
#define SR_UTF8_H
/*
 * utf8: whether bytes are UTF-8 (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF), as they
 * come in pieces. Fails at the first byte that can't follow. Pure; any thread.
 */
#include "../base/bytes.h"

/* Between two pieces. All zero: at the beginning. */
typedef struct sr_utf8 {
    uint8_t left;      /* bytes of a character that are to come */
    uint8_t low, high; /* what the next one of them may be */
} sr_utf8;

/* False: these bytes can't follow those before. */
bool sr_utf8_feed(sr_utf8 *u, sr_bytes in);

/* Whether it may end here: no character is cut off. */
static inline bool sr_utf8_whole(const sr_utf8 *u)
{
    return !u->left;
}

static inline bool sr_is_utf8(sr_bytes s)
{
    sr_utf8 u = {0};
    return sr_utf8_feed(&u, s) && sr_utf8_whole(&u);
}

#endif
