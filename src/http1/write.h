#ifndef SR_WRITE_H
#define SR_WRITE_H
/*
 * write: the head of a response and the framing of its body as HTTP/1.x has them on the wire (RFC 9112 4, 6,
 * 7).
 *
 * Order of calls: status, the fields (sr_response_field), end, then the body. Bytes are appended to the
 * caller's buffer. After an error it holds a part of a head, and the caller drops that. Pure; any thread.
 */
#include "../http/response.h"
#include "../http/version.h"

/*
 * The status line, which always says HTTP/1.1 (RFC 9112 2.3), of a status from 100 to 999. False: no memory.
 */
bool sr_write_status(sr_buffer *out, int status);

/*
 * Ends the head of a final response. `known` as for sr_response_decide, which is called here. `date` has
 * SR_DATE_LEN bytes and is sent unless the application has set Date; `server` is sent unless its len is 0.
 * Connection is "close" if keep_alive is false, and "keep-alive" for an HTTP/1.0 client that is kept.
 */
sr_response_error sr_write_end(sr_response *r, sr_version version, sr_buffer *out, uint64_t known,
                               const char *date, sr_bytes server);

/* Whether the body is sent in chunks. HTTP/1.0 has none: there the close ends a body of unknown length. */
static inline bool sr_write_chunked(const sr_response *r, sr_version version)
{
    return r->framing == SR_FRAMING_OPEN && version != SR_HTTP_1_0;
}

/*
 * Writes "1a2b\r\n", at most 18 bytes; the caller appends data and CRLF. length > 0. Returns the bytes
 * written.
 */
size_t sr_write_chunk_head(char out[18], uint64_t length);

#endif
