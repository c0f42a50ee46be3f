#ifdef SR_PORTABLE
#include "sendfile.h"

#include "sockets.h"

#include <unistd.h>

enum { PIECE = 65536 };

ssize_t sr_sendfile(int socket, int fd, off_t *offset, size_t want)
{
    char piece[PIECE];
    ssize_t n = pread(fd, piece, want < sizeof piece ? want : sizeof piece, *offset);
    if (n > 0)
        n = send(socket, piece, (size_t)n, MSG_NOSIGNAL);
    if (n > 0)
        *offset += n;
    return n;
}
#endif
