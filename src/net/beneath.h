#ifndef SR_BENEATH_H
#define SR_BENEATH_H
/*
 * beneath: opens files below a folder, and nothing else: openat2(2) with RESOLVE_BENEATH. Where that is
 * missing (before Linux 5.6) or not allowed (old seccomp filters answer EPERM), a path is walked name by
 * name, and no symbolic link is followed.
 *
 * Any thread.
 */
#include <stdbool.h>

typedef enum sr_links {
    SR_LINKS_NONE,    /* symbolic links are not followed */
    SR_LINKS_BENEATH, /* those that stay below the folder are */
    SR_LINKS_ALL,     /* all but the magic ones of /proc */
} sr_links;

/*
 * Opens a folder to open files below it, close-on-exec. -1 with errno; EACCES: this process may not look into
 * it.
 */
int sr_beneath_folder(const char *path);

/*
 * Opens a file to read it, close-on-exec. `path` has no slash at its ends, no empty name, and neither "." nor
 * "..". Does not wait: a FIFO without a writer is opened at once. Whether it is a regular file is up to the
 * caller to ask (fstat). -1 with errno: ELOOP or EXDEV for a link that is not followed.
 */
int sr_beneath_open(int folder, const char *path, sr_links links);

/* The same by steps, as where openat2 is missing. EINVAL: `path` is not as above. */
int sr_beneath_walk(int folder, const char *path);

/* Whether the kernel has openat2, and links can be followed. */
bool sr_beneath_whole(int folder);

/* For tests: from now on as if openat2 were missing, or as nobody knows yet. */
void sr_beneath_pretend(bool missing);

#endif
