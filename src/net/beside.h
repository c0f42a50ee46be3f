#ifndef SR_BESIDE_H
#define SR_BESIDE_H
/*
 * beside: starts a program that runs beside this process and is not its child. So nothing that this process
 * does with its children (wait, a handler of CHLD, a debugger that follows a fork) affects it, and no code
 * but this one runs between fork and exec.
 *
 * Called by: xs, for the edge of --workers 0. Thread: any. Failure: errno.
 */
#include <sys/types.h>

/*
 * Starts `path` with these words, the first of which is its name. No signal is blocked in it, STDIN and
 * STDOUT are /dev/null, and STDERR and the n descriptors `fds` stay open. Sets *pid, and *pidfd to a
 * descriptor of the process (pidfd.h), close-on-exec, which the caller closes. Returns 0 or errno, also that
 * of the exec.
 */
int sr_beside_start(const char *path, char *const *words, const int *fds, int n, pid_t *pid, int *pidfd);

#endif
