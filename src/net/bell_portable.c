#ifdef SR_PORTABLE
#include "../base/random.h"
#include "bell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A FIFO that is opened for both: unlike a pipe it is one descriptor. Its name lives for an instant. */
int sr_bell_new(void)
{
    unsigned long long number;
    char path[64];
    if (!sr_random(&number, sizeof number))
        return -1;
    snprintf(path, sizeof path, "/tmp/sirius-%016llx.bell", number);
    if (mkfifo(path, 0600) != 0)
        return -1;
    int fd = chmod(path, 0600) == 0 ? open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1,
        err = errno; /* whatever the umask is */
    unlink(path);
    errno = err;
    return fd;
}

void sr_bell_heard(int fd)
{
    char bytes[4096];
    while (read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        ;
}
#endif
