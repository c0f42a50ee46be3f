#ifndef SR_MOUNT_H
#define SR_MOUNT_H
/*
 * mount: the folders of --static, and the prefixes under which their files are served; and that of
 * --acme-webroot.
 *
 * Owner: the settings of the edge. Lifetime: as long as the edge. Thread: one.
 * Failure: a folder that cannot be opened has no files; it is tried again at each request.
 */
#include "../net/beneath.h"
#include "types.h"

enum { SR_MOUNTS_MAX = 64, SR_CHARSET_MAX = 40 };

typedef struct sr_mount {
    char *word;      /* that all texts here point into; owned */
    sr_bytes prefix; /* "/assets"; "": all */
    const char *folder;
    const char *index; /* file that answers for a folder; NULL: none */
    sr_bytes charset;  /* of text/..., len 0: none is said */
    bool is_immutable; /* for a year, and for ever */
    char cache[48];    /* value of Cache-Control if it is not; "": none */
    sr_links links;
    bool passes; /* what is not there is the application's */
    /* of an ACME client: has answers to challenges below .well-known/acme-challenge, and nothing else */
    bool is_webroot;
    int fd; /* of the folder; -1: it is not open */
} sr_mount;

typedef struct sr_mounts {
    sr_mount at[SR_MOUNTS_MAX]; /* longer prefixes first */
    size_t n;
    sr_types types;
} sr_mounts;

/*
 * Adds a folder: "FLAGS=PREFIX=FOLDER". Flags, with commas between them: immutable, max-age:SECONDS,
 * no-cache, index:NAME, charset:NAME, links, links:all, pass, webroot; others are ignored. NULL, or why not:
 * a static text that continues "static=...".
 */
const char *sr_mounts_add(sr_mounts *m, const char *word);

/* Opens all folders. Returns the first that can't be opened, with errno; NULL: all are open. */
const sr_mount *sr_mounts_open(sr_mounts *m);

void sr_mounts_free(sr_mounts *m); /* closes all folders */

/*
 * The one with the longest prefix for this path, as it came; *used: how much of it is the prefix. NULL: none.
 */
sr_mount *sr_mounts_find(sr_mounts *m, sr_bytes path, size_t *used);

sr_bytes sr_mount_cache(const sr_mount *m); /* value of Cache-Control; len 0: none */

/* The descriptor of the folder, which is opened if it is not yet. -1 with errno. */
int sr_mount_folder(sr_mount *m);

#endif
