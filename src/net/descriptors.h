#ifndef SR_DESCRIPTORS_H
#define SR_DESCRIPTORS_H
/* descriptors: how many files this process may have open, and how to close what others may have changed. */
#include <stdint.h>

/*
 * Raises the soft limit (RLIMIT_NOFILE) as far as the hard one allows, and returns it. Children inherit it.
 */
uint64_t sr_descriptors_raise(void);

/* The soft limit: all descriptors are below it. Any thread. */
int sr_descriptors_limit(void);

/*
 * The lowest number above 2 that is free, or the limit when none is free. `open` is a descriptor of this
 * process. Costs two system calls, and for a moment one more descriptor, which is close-on-exec.
 */
int sr_descriptors_lowest(int open);

/*
 * Closes a descriptor whose open file other processes could change. A close of a socket with SO_LINGER can
 * wait for its peer as long as somebody has set; this one does not wait.
 */
void sr_descriptors_discard(int fd);

/* Closes `fd`, unless it is -1, behind a call that failed: errno stays. Returns -1. Any thread. */
int sr_descriptors_failed(int fd);

/*
 * Returns `fd`, or a copy of it above 2 if it took the place of STDIN, STDOUT or STDERR, which an application
 * may have closed: what libraries print must not go to a client or into a file. For everything that is opened
 * where the application may have run before. Returns -1 with errno, and closes `fd`, when no descriptor is
 * free. Any thread.
 */
int sr_descriptors_above(int fd);

/*
 * Returns a copy of `fd` with a high number, and closes `fd`; or `fd` itself, if there is none. What an
 * application opens gets the lowest number that is free: so when it closes all descriptors, and then opens
 * files, the server writes to none of them. Any thread.
 */
int sr_descriptors_high(int fd);

/*
 * A number for what a descriptor stands for, to find out whether it still does: an application may have
 * closed it, and got its number for something else. 0: it is closed. Two of eventfd and the like have the
 * same.
 */
uint64_t sr_descriptors_what(int fd);

#endif
