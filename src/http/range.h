#ifndef SR_RANGE_H
#define SR_RANGE_H
/* range: the parts of a file that a client asks for (RFC 9110 14.1, 14.2). Pure; any thread. */
#include "../base/bytes.h"

enum {
    SR_RANGES_MAX = 16
}; /* a video player asks for one, a reader of PDF for a few; Range with more is ignored */

typedef struct sr_range {
    uint64_t first, length; /* length > 0, and both within the file */
} sr_range;

typedef struct sr_ranges {
    size_t n;                   /* 0 unless the result is SR_RANGE_PARTS */
    sr_range at[SR_RANGES_MAX]; /* in the order of the request */
} sr_ranges;

typedef enum sr_range_result {
    SR_RANGE_IGNORED, /* answer as if there were no Range */
    SR_RANGE_PARTS,   /* 206: those in `out` */
    SR_RANGE_OUTSIDE, /* 416 */
} sr_range_result;

/*
 * Reads the value of Range for a file of `size` bytes, at most INT64_MAX. Ignored are other units, what is
 * malformed, more than SR_RANGES_MAX ranges, ranges that together are larger than the file (RFC 9110 14.2:
 * overlapping ranges cost only the server), and every Range of an empty file, of which no part can be named.
 */
sr_range_result sr_range_parse(sr_ranges *out, sr_bytes value, uint64_t size);

#endif
