#ifdef SR_PORTABLE
#include "unsent.h"

#include <sys/ioctl.h>
#include <sys/socket.h>

int sr_unsent_bytes(int fd)
{
    int n = 0;
#if defined SO_NWRITE /* macOS */
    socklen_t len = sizeof n;
    return getsockopt(fd, SOL_SOCKET, SO_NWRITE, &n, &len) == 0 ? n : 0;
#elif defined FIONWRITE /* FreeBSD */
    return ioctl(fd, FIONWRITE, &n) == 0 ? n : 0;
#else
    return ioctl(fd, TIOCOUTQ, &n) == 0 ? n : 0;
#endif
}

uint64_t sr_unsent_total(int fd)
{
    (void)fd;
    return 0;
}
#endif
