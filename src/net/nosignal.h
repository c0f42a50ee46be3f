#ifndef SR_NOSIGNAL_H
#define SR_NOSIGNAL_H
/*
 * nosignal: lets a write fail without a signal. SIGPIPE (nobody reads) and SIGXFSZ (RLIMIT_FSIZE) end the
 * process, or run a handler of the application; the system call returns EPIPE or EFBIG in any case.
 *
 *   sr_nosignal_begin(&mask);
 *   n = write(...);
 *   sr_nosignal_end(&mask, n < 0 ? errno : 0);
 *
 * Thread: acts on the calling one only; the kernel sends both signals to the thread that writes. Keeps errno.
 */
#include <signal.h>

typedef struct sr_nosignal {
    sigset_t before; /* signals that were blocked before */
} sr_nosignal;

void sr_nosignal_begin(sr_nosignal *q);
void sr_nosignal_end(const sr_nosignal *q, int err); /* err: errno of the call in between, or 0 */

#endif
