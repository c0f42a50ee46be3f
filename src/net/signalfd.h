#ifndef SR_SIGNALFD_H
#define SR_SIGNALFD_H
/*
 * signalfd: signals as events of a loop (signalfd(2)). Owner: the process, once. The caller closes the
 * descriptor at its end.
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* From now on these signals end nothing, and make the descriptor readable. -1 with errno. */
int sr_signalfd_open(const int *signals, size_t n);

/* The next signal that has come. *pid: who has sent it; 0: unknown. False: there is none left. */
bool sr_signalfd_next(int fd, int *signal, pid_t *pid);

#endif
