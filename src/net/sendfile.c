#ifndef SR_PORTABLE
#include "sendfile.h"

#include "nosignal.h"

#include <errno.h>
#include <stddef.h>
#include <sys/sendfile.h>

/* sendfile has no MSG_NOSIGNAL. sirius-edge ignores SIGPIPE, but callers need not. */
ssize_t sr_sendfile(int socket, int fd, off_t *offset, size_t want)
{
    struct sigaction action;
    sr_nosignal mask;
    if (sigaction(SIGPIPE, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
        return sendfile(socket, fd, offset, want);
    sr_nosignal_begin(&mask);
    ssize_t n = sendfile(socket, fd, offset, want);
    sr_nosignal_end(&mask, n < 0 ? errno : 0);
    return n;
}
#endif
