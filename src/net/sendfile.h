#ifndef SR_SENDFILE_H
#define SR_SENDFILE_H
/* sendfile: from a file into a socket, without SIGPIPE (sendfile(2)). Any thread. */
#include <sys/types.h>

/*
 * Sends up to `want` bytes from *offset on, which it adds to *offset. Returns how many, 0 at the end of the
 * file, -1 with errno.
 */
ssize_t sr_sendfile(int socket, int fd, off_t *offset, size_t want);

#endif
