#ifndef SR_CODING_H
#define SR_CODING_H
/* coding: the content codings that a client accepts (RFC 9110 12.5.3). Pure; any thread. */
#include "request.h"

typedef enum sr_coding {
    /* in the order in which they are preferred where the client does not care: smallest first */
    SR_CODING_BR,
    SR_CODING_ZSTD,
    SR_CODING_GZIP,
    SR_CODINGS,
    SR_CODING_NONE = SR_CODINGS,
} sr_coding;

/*
 * Writes the codings that the client prefers to none, best first, and returns how many. Without
 * Accept-Encoding there are none, as such a client may not decode anything.
 */
size_t sr_coding_wanted(const sr_request *r, const char *base, sr_coding out[SR_CODINGS]);

sr_bytes sr_coding_name(sr_coding coding);      /* "gzip", for Content-Encoding; of SR_CODING_NONE "" */
sr_bytes sr_coding_extension(sr_coding coding); /* ".gz", of a file beside the file; NUL-terminated */

#endif
