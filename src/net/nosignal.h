#ifndef SR_NOSIGNAL_H
#define SR_NOSIGNAL_H
/*
 * nosignal: a write that fails raises no signal. SIGPIPE (nobody reads) and SIGXFSZ (RLIMIT_FSIZE) end the
 * process unless there is a handler, and an application may set any; the system call fails with EPIPE or EFBIG
 * just as well.
 *
 *   sr_nosignal_begin(&q);
 *   n = write(...);
 *   sr_nosignal_end(&q, n < 0 ? errno : 0);
 *
 * Thread: the calling one only; the kernel sends both to who writes. Keeps errno.
 */
#include <signal.h>

typedef struct sr_nosignal {
    sigset_t before; /* what was blocked */
} sr_nosignal;

void sr_nosignal_begin(sr_nosignal *q);
void sr_nosignal_end(const sr_nosignal *q, int err); /* err: of the call in between, or 0 */

#endif
