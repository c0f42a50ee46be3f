#ifndef SR_HEAD_H
#define SR_HEAD_H
/*
 * head: parses the head of an HTTP/1.x request (RFC 9112 2-6). It and framing.c are the one place where its
 * framing is decided.
 *
 * Pure: no allocation, no I/O, no clock. The bytes are the caller's. Positions are offsets, so the caller may
 * move the bytes between two calls. One thread at a time for each object.
 *
 * Strict on purpose: what two parsers could read in two ways is refused, never repaired. Every refusal has a
 * status and a reason. After one, nothing that follows on the connection may be read as a request.
 *
 * Every split of the same bytes gives the same result, the reason included. A line is checked only when it is
 * complete. What is decided earlier (a first byte that starts no method, a CR without LF, the limits) is
 * decided at a fixed offset, and the smallest offset wins, however the bytes came.
 *
 * Order of checks: line by line, each for its own faults (grammar, a second or malformed Host,
 * Content-Length, Transfer-Encoding, Content-Type); then, with the whole head: 400 no Host in HTTP/1.1, 400
 * Transfer-Encoding in HTTP/1.0, 400 both framings, 501 transfer coding, 501 method, 417, 426.
 */
#include "../http/request.h"

typedef enum sr_parse {
    SR_PARSE_MORE, /* the head is not complete */
    SR_PARSE_DONE, /* the head is complete: request->head_len bytes of it */
    SR_PARSE_BAD,  /* refused: request->status and request->why */
} sr_parse;

/* Starts a new request. Cheap: does not touch fields[]. */
void sr_request_init(sr_request *r);

/*
 * Parses on. `at` points to the first byte of the request, followed by all bytes so far; the pointer may
 * differ from call to call, the bytes must not. Never reads at[len]. After DONE or BAD call sr_request_init
 * before the next call.
 */
sr_parse sr_request_feed(sr_request *r, const sr_request_limits *limits, const char *at, size_t len);

#endif
