/* nosignal: no signal for a write that fails, and all others as before */
#include "net/nosignal.h"
#include "tap.h"

#include <errno.h>
#include <unistd.h>

static bool blocked(int signal)
{
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, signal);
}

static bool pending(int signal)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, signal);
}

int main(void)
{
    int ends[2];
    sr_nosignal q;
    if (pipe(ends) != 0)
        return 99;
    close(ends[0]);
    for (int i = 0; i < 2; i++) {
        sr_nosignal_begin(&q);
        ok(blocked(SIGPIPE) && blocked(SIGXFSZ) && !blocked(SIGTERM), "both are held back");
        ssize_t n = write(ends[1], "x", 1);
        ok(n < 0 && errno == EPIPE && pending(SIGPIPE), "nobody reads");
        sr_nosignal_end(&q, errno);
        is_int(errno, EPIPE, "errno is kept");
        ok(!pending(SIGPIPE) && !blocked(SIGPIPE) && !blocked(SIGXFSZ), "as if nothing had been");
    }
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    sr_nosignal_begin(&q);
    sr_nosignal_end(&q, 0);
    ok(blocked(SIGPIPE) && !blocked(SIGXFSZ), "what was blocked stays so");
    return done_testing();
}
