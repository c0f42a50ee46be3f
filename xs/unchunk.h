#ifndef SIRIUS_UNCHUNK_H
#define SIRIUS_UNCHUNK_H
/*
 * unchunk: decodes bodies that an application has framed as chunked by itself (Plack::Middleware::Chunked,
 * Mojolicious).
 *
 * The server frames all bodies, so such bytes are decoded first. That the application says
 * "Transfer-Encoding: chunked" does not prove that they are framed: until the first chunk-size line is
 * complete, what came is kept; if it is not one, everything is sent as it is.
 */
#include "http1/chunked.h"

typedef enum unchunk_state {
    UNCHUNK_OFF,    /* bytes are passed on as they are */
    UNCHUNK_TRYING, /* the first line is not complete */
    UNCHUNK_ON,
    UNCHUNK_ENDED, /* the last chunk has come: what follows is dropped */
    UNCHUNK_BAD,   /* framing that became invalid: the response can only be cut */
} unchunk_state;

typedef struct unchunk {
    unchunk_state state;
    sr_chunked decoder;
    uint8_t kept_len;
    char kept[20]; /* while trying: at most 16 digits, CR, and the byte that shows that it is no size line */
} unchunk;

void unchunk_begin(unchunk *u, bool app_chunked);

/*
 * Calls `out` with runs of body bytes. False: what came can't be decoded (state is BAD), or out has returned
 * false.
 */
bool unchunk_feed(unchunk *u, sr_bytes in, bool (*out)(void *arg, sr_bytes data), void *arg);

/*
 * At the end of the body: passes on bytes that were kept while trying. False: the body ended inside a chunk.
 */
bool unchunk_end(unchunk *u, bool (*out)(void *arg, sr_bytes data), void *arg);

#endif
