#ifndef SR_DECODE_H
#define SR_DECODE_H
/*
 * decode: takes the framing of HTTP/1.x off the body of a request (RFC 9112 6.3, 7.1). The bytes go to
 * sr_body.
 */
#include "../conn/body.h"
#include "../http/request.h"

/*
 * For a request with SR_BODY_CHUNKED, or with SR_BODY_LENGTH and a length above 0. NULL: no memory.
 * sr_body_free frees it.
 */
sr_body *sr_decode_new(const sr_request *r);

/* Takes bytes of the body from `in`; *used is how many of them belong to it. `b` is of sr_decode_new. */
sr_body_result sr_decode(sr_body *b, const sr_config *config, sr_bytes in, size_t *used);

#endif
