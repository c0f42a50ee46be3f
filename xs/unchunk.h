#ifndef SIRIUS_UNCHUNK_H
#define SIRIUS_UNCHUNK_H
/*
 * unchunk: bodies that an application has framed as chunked by itself (Plack::Middleware::Chunked, Mojolicious).
 *
 * Framing is the server's, so such bytes are decoded and framed anew. That they say "Transfer-Encoding: chunked" does not
 * mean that they are: until the first chunk-size line has been read, what came is kept, and when it is none, all of it is
 * taken as it is.
 */
#include "http/chunked.h"

typedef enum unchunk_state {
    UNCHUNK_OFF,    /* bytes are taken as they are */
    UNCHUNK_TRYING, /* the first line is not complete */
    UNCHUNK_ON,
    UNCHUNK_ENDED, /* the last chunk was there: what follows is dropped */
    UNCHUNK_BAD,   /* it was framed and is not any more: the response can only be cut */
} unchunk_state;

typedef struct unchunk {
    unchunk_state state;
    sr_chunked decoder;
    uint8_t kept_len;
    char kept[20]; /* while trying: at most 16 digits, CR and what shows that it is none */
} unchunk;

void unchunk_begin(unchunk *u, bool app_chunked);

/* Calls `out` with runs of body bytes. False: what came can't be decoded (state is BAD), or out has said false. */
bool unchunk_feed(unchunk *u, sr_bytes in, bool (*out)(void *arg, sr_bytes data), void *arg);

/* At the end of the body: bytes that were kept while trying are its end. False: it ended inside a chunk. */
bool unchunk_end(unchunk *u, bool (*out)(void *arg, sr_bytes data), void *arg);

#endif
