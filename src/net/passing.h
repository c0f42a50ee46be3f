#ifndef SR_PASSING_H
#define SR_PASSING_H
/* passing: messages with descriptors, over a unix socket. Thread: any. */
#include <stdint.h>
#include <sys/types.h>

enum { SR_PASSING_MAX = 65 }; /* descriptors of a message */

/* As send, without SIGPIPE, and not interrupted by a signal. The descriptors stay the caller's. */
ssize_t sr_passing_send(int socket, const void *at, size_t len, const int *fds, int n_fds, int flags);

/*
 * As recv, not interrupted by a signal. *n_fds: how many descriptors there is room for, and then how many
 * there are: they are the caller's, close-on-exec, and above 2 (sr_descriptors_above). What there is no room
 * for is closed. *pid: who has sent it, where the kernel reports that (SO_PASSCRED), else 0; NULL: this is
 * not asked for.
 */
ssize_t sr_passing_receive(int socket, void *at, size_t len, int *fds, int *n_fds, int32_t *pid, int flags);

#endif
