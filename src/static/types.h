#ifndef SR_TYPES_H
#define SR_TYPES_H
/*
 * types: the media type of a file by the extension of its name. The supervisor writes the table
 * (lib/Sirius/Edge/Types.pm).
 * Owner: the caller of read. One thread writes, then any reads. Failure: lack of memory.
 */
#include "../base/bytes.h"

enum { SR_TYPE_MAX = 127 }; /* bytes of a type (RFC 6838 4.2 has 127 for each half; none is so long) */

typedef struct sr_type {
    sr_bytes extension; /* lower case, without its dot */
    sr_bytes name;      /* "text/css" */
    bool is_text;       /* text/...: a charset is added */
    bool is_packed;     /* compressed in itself: there is no smaller file beside it */
} sr_type;

typedef struct sr_types {
    char *text; /* that the entries point into; owned */
    sr_type *at;
    size_t n;
} sr_types;

/*
 * Reads "css:text/css js:application/javascript", in any order. NULL, or why not: a static text that
 * continues "types".
 */
const char *sr_types_read(sr_types *t, const char *text);
void sr_types_free(sr_types *t);

/* The type of a file of this name; of one that is not known text/plain, as Plack::App::File has it. */
const sr_type *sr_types_of(const sr_types *t, const char *name);

#endif
