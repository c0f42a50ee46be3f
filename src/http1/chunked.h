#ifndef SR_CHUNKED_H
#define SR_CHUNKED_H
/*
 * chunked: decoder of the chunked transfer coding (RFC 9112 7.1), trailers read, checked and dropped.
 *
 * Pure: no allocation, no I/O. Data is not copied: the decoder tells where it lies in the caller's bytes. One
 * object for each message; one thread at a time. Strict: 1 to 16 HEXDIG, extensions by the grammar (";" token
 * ["=" (token / quoted-string)]; no bare ";", no space around), CRLF exactly. A trailer field that could
 * change the framing, routing or identity of the message (Transfer-Encoding, Content-Length, Host,
 * Content-Type, Content-Encoding, Content-Range, Authorization, Trailer, TE, Connection, Expect, Cookie, ...;
 * RFC 9110 6.5.1 forbids a sender to put them there) is refused.
 */
#include "../base/bytes.h"

enum {
    SR_CHUNK_LINE_MAX = 4096,     /* a chunk-size line with its extensions */
    SR_CHUNK_EXT_MAX = 16384,     /* extensions of a message: chunks of 1 byte with long ones are an attack */
    SR_CHUNK_TRAILER_MAX = 16384, /* the trailer section in bytes */
    SR_CHUNK_TRAILERS_MAX = 100,  /* trailer fields */
};

typedef enum sr_chunked_result {
    SR_CHUNKED_MORE, /* all bytes were used, and the message is not complete */
    SR_CHUNKED_DATA, /* `data` is a run of body bytes; call again with what follows `used` */
    SR_CHUNKED_DONE, /* the last CRLF was used; what follows is the next message */
    SR_CHUNKED_BAD,  /* refused: status (400 or 431) and why */
} sr_chunked_result;

typedef struct sr_chunked {
    uint64_t left;     /* bytes of the current chunk not yet seen */
    uint32_t line_len; /* bytes of the current line so far */
    uint32_t ext_len;  /* bytes of extensions in the whole message */
    uint32_t trailer_len;
    uint16_t trailers;
    uint8_t phase;
    uint8_t digits;
    uint8_t name_len; /* of the current trailer field's name, at most one past name[] */
    char name[32];    /* its start, lower case: to know the forbidden ones */
    int status;
    const char *why; /* static */
} sr_chunked;

void sr_chunked_init(sr_chunked *c);

/*
 * Decodes `in`. *used is how many of its bytes were consumed, *data the body bytes among them (only for
 * SR_CHUNKED_DATA; always the last bytes used). Call until it returns MORE, DONE or BAD.
 */
sr_chunked_result sr_chunked_feed(sr_chunked *c, sr_bytes in, size_t *used, sr_bytes *data);

/*
 * Bytes of body that are still to come in the current chunk, so that the caller can refuse with 413 before
 * they do. 0 while the size line is not complete: digits may follow, and the line may yet be refused.
 */
uint64_t sr_chunked_announced(const sr_chunked *c);

#endif
