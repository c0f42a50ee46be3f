#ifndef SR_QUIET_H
#define SR_QUIET_H
/*
 * quiet: a write that fails raises no signal. SIGPIPE (nobody reads) and SIGXFSZ (RLIMIT_FSIZE) end the
 * process unless there is a handler, and an application may set any; the system call fails with EPIPE or EFBIG
 * just as well.
 *
 *   sr_quiet_begin(&q);
 *   n = write(...);
 *   sr_quiet_end(&q, n < 0 ? errno : 0);
 *
 * Thread: the calling one only; the kernel sends both to who writes. Keeps errno.
 */
#include <signal.h>

typedef struct sr_quiet {
    sigset_t before; /* what was blocked */
} sr_quiet;

void sr_quiet_begin(sr_quiet *q);
void sr_quiet_end(const sr_quiet *q, int err); /* err: of the call in between, or 0 */

#endif
