#ifndef SR_FOLD_H
#define SR_FOLD_H
/*
 * fold: a path without what is different in each request, so that requests can be counted by path:
 * "/user/42/edit" becomes "/user/:id/edit".
 *
 * Pure functions; any thread.
 */
#include "../base/bytes.h"

enum { SR_FOLD_MAX = 120 }; /* bytes of a folded path; a multiple of 8 */

/*
 * The path of a target, percent-encoded as it came; "" is "/". A segment that is a number, a date, a UUID,
 * eight or more hexadecimal digits, or a long random word, as of base64, becomes ":id"; of one with an
 * extension, as "42.json", the part before that. Other segments stay whole. Bytes that are no visible ASCII
 * become '?'. Of a longer path the end becomes "...". Returns the length.
 */
size_t sr_fold(sr_bytes path, char out[SR_FOLD_MAX]);

/* Whether a word is such an id. */
bool sr_fold_is_id(sr_bytes word);

#endif
