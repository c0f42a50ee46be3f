#ifndef SR_FIELDS_H
#define SR_FIELDS_H
/*
 * fields: what the head of a response says of a file of --static, and what stands between several parts of
 * it. Pure; any thread.
 */
#include "../base/buffer.h"
#include "find.h"

enum { SR_BOUNDARY_MAX = 60 };

/*
 * Appends the fields of a response with f->status, as lines "Name: value\r\n": all but the length. `boundary`
 * is that of several parts (RFC 2046), and may not occur in the file; it has at most SR_BOUNDARY_MAX bytes.
 * False: no memory.
 */
bool sr_fields_add(const sr_found *f, const sr_request *r, const char *base, int64_t now, sr_bytes boundary,
                   sr_buffer *out);

/* Appends what stands before part i of several, or, for i == ranges.n, behind the last. False: no memory. */
bool sr_fields_part(const sr_found *f, size_t i, sr_bytes boundary, sr_buffer *out);

#endif
