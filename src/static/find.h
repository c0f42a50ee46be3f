#ifndef SR_FIND_H
#define SR_FIND_H
/*
 * find: the answer to a request for a file of --static or --acme-webroot: which file, or the one beside it
 * that is compressed; whether the client has it already, and which parts of it. Nothing is sent here.
 *
 * Owner: the caller of sr_find, who closes `fd`, or passes it on. Thread: one.
 * Failure: in `status`, and for 503 in `error`.
 */
#include "../http/coding.h"
#include "../http/range.h"
#include "mount.h"

typedef struct sr_found {
    int status; /* 200, 206, 301, 304, 403, 404, 405, 412, 416, 503 */
    int error;  /* errno of 503 */
    int fd;     /* the file, with 200 and 206; else -1 */
    bool is_head;
    const sr_mount *mount;
    const sr_type *type;
    uint64_t size;    /* of the file */
    int64_t modified; /* s since 1970; -1: unknown */
    sr_coding coding;
    sr_ranges ranges; /* with 206 */
    char etag[64];    /* with its quotes */
    size_t etag_len;
} sr_found;

/*
 * Looks for the file of a request. `now` is in s since 1970. False: the request is for the application.
 */
bool sr_find(sr_mounts *mounts, const sr_request *r, const char *base, int64_t now, sr_found *out);

#endif
