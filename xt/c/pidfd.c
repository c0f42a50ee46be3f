/* pidfd: a descriptor that tells when a process has ended */
#include "net/pidfd.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    int fd = sr_pidfd_open(child);
    if (fd < 0 && errno == ENOSYS) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        printf("1..0 # SKIP no pidfd_open\n");
        return 0;
    }
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ok(fd >= 0 && fcntl(fd, F_GETFD) & FD_CLOEXEC, "close-on-exec");
    is_int(poll(&p, 1, 0), 0, "not readable while the process runs");
    ok(!sr_pidfd_ended(fd, child), "has not ended");
    kill(child, SIGKILL);
    is_int(poll(&p, 1, 60000), 1, "readable once it has ended");
    waitpid(child, NULL, 0);
    is_int(poll(&p, 1, 0), 1, "and after somebody has waited for it");
    errno = 0;
    ok(sr_pidfd_open(child) < 0 && errno == ESRCH, "no such process");
    ok(sr_pidfd_ended(fd, child), "it has ended");
    close(fd);
    return done_testing();
}
