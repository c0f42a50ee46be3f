#ifndef SR_DESCRIPTORS_H
#define SR_DESCRIPTORS_H
/* descriptors: how many files a process may have open. Inherited by its children. */
#include <stdint.h>

/* Raises the soft limit (RLIMIT_NOFILE) to the hard one, as far as that goes, and returns what is allowed
 * then. */
uint64_t sr_descriptors_raise(void);

/* The soft limit as it is: numbers of descriptors are below it. Any thread. */
int sr_descriptors_limit(void);

/*
 * The lowest number above 2 that is free: all between are in use; the limit when none is free. `open` is a descriptor of this
 * process. Two system calls; for a moment there is one descriptor more, close-on-exec.
 */
int sr_descriptors_lowest(int open);

/*
 * Closes what others have had their hands on. A socket with SO_LINGER waits in close for its peer, for as long as somebody
 * has said; this does not.
 */
void sr_descriptors_discard(int fd);

/*
 * `fd`, or a copy of it above 2 when it took the place of STDIN, STDOUT or STDERR, which an application may have closed: what
 * libraries print must not go to a client, nor into a file that is sent to one. For whatever is opened where the
 * application may have run before. -1, and `fd` is closed: none is free. Any thread.
 */
int sr_descriptors_above(int fd);

#endif
