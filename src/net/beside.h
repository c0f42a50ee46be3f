#ifndef SR_BESIDE_H
#define SR_BESIDE_H
/*
 * beside: a program that runs beside this one and is not its child. So nothing that this process does with its children
 * (wait, a handler of CHLD, a debugger that follows a fork) meets it, and no code but this runs between fork and exec.
 */
#include <sys/types.h>

/*
 * Starts `path` with these words, the first of which is its name, an empty mask of signals, STDIN and STDOUT at /dev/null,
 * and STDERR and `fds` open. 0 or errno, also of the exec itself. *pid is its process, *pidfd a descriptor that is readable
 * once it has ended: the caller's, close-on-exec.
 */
int sr_beside_start(const char *path, char *const *words, const int *fds, int n, pid_t *pid, int *pidfd);

#endif
