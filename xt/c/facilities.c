/*
 * facilities: what the edge and the queue need of a system, as the headers of src/net and src/base promise it
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* POLLRDHUP, waitpid */
#endif
#include "base/clock.h"
#include "base/random.h"
#include "net/bell.h"
#include "net/hangup.h"
#include "net/inotify.h"
#include "net/self.h"
#include "net/sendfile.h"
#include "net/signalfd.h"
#include "net/sockets.h"
#include "net/tempfile.h"
#include "net/timerfd.h"
#include "net/unsent.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 60000 };

static bool is_readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    while ((n = poll(&p, 1, ms)) < 0 && errno == EINTR)
        ;
    return n > 0;
}

static bool is_private(int fd)
{
    return fd > STDERR_FILENO && fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static bool waits(int fd)
{
    return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void bells(void)
{
    mode_t mask = umask(0377);
    int bell = sr_bell_new();
    uint64_t one = 1;
    umask(mask);
    ok(is_private(bell) && !waits(bell), "a bell: close-on-exec, does not block");
    ok(!is_readable(bell, 0), "has not rung");
    for (int i = 0; i < 3; i++)
        is_int(write(bell, &one, sizeof one), sizeof one, "rings");
    ok(is_readable(bell, 0), "which a loop sees");
    sr_bell_heard(bell);
#ifdef SR_PORTABLE
    ok(!is_readable(bell, 0), "until it was heard");
    int n = 0;
    while (n < 1000000 && write(bell, &one, sizeof one) > 0)
        n++;
    ok(errno == EAGAIN && n < 1000000, "one that nobody hears does not block");
    sr_bell_heard(bell);
    ok(!is_readable(bell, 0), "and is heard once");
#endif
    close(bell);
}

/* Each has timers of its own, whenever it was forked */
static void timers_of_children(void)
{
    int set = 0, heard = 0, timer = sr_timerfd_open();
    for (; set < 200 && heard == set; set++) {
        int status = 1;
        sr_timerfd_set(timer, sr_clock_monotonic() + 100000); /* its thread is at work */
        pid_t child = fork();
        if (!child) {
            alarm(LONG_MS / 1000);
            int own = sr_timerfd_open();
            sr_timerfd_set(own, 1);
            _exit(is_readable(own, LONG_MS) ? 0 : 2);
        }
        waitpid(child, &status, 0);
        heard += status == 0;
    }
    is_int(heard, 200, "children have timers of their own");
    close(timer);
}

static void timers(void)
{
    int timer = sr_timerfd_open(), other = sr_timerfd_open();
    int64_t now = sr_clock_monotonic();
    ok(is_private(timer), "a timer is close-on-exec");
    sr_timerfd_heard(timer); /* does not wait */
    sr_timerfd_set(other, now + 3600 * SR_SECOND);
    sr_timerfd_set(timer, now + 30 * SR_MILLISECOND);
    ok(!is_readable(timer, 0), "not yet");
    ok(is_readable(timer, LONG_MS) && sr_clock_monotonic() >= now + 30 * SR_MILLISECOND, "at its time");
    ok(!is_readable(other, 0), "not the other one");
    sr_timerfd_heard(timer);
    ok(!is_readable(timer, 0), "until that was heard");
    sr_timerfd_set(other, 1);
    ok(is_readable(other, LONG_MS), "at once, when its time is over");
    sr_timerfd_set(other, sr_clock_monotonic() + 3600 * SR_SECOND);
    sr_timerfd_heard(other);
    sr_timerfd_set(timer, sr_clock_monotonic() + 20 * SR_MILLISECOND);
    sr_timerfd_set(timer, 0);
    ok(!is_readable(timer, 60), "not when it is off");
    sr_timerfd_set(timer, sr_clock_monotonic() + 2200 * SR_MILLISECOND);
    ok(!is_readable(timer, 1000) && is_readable(timer, LONG_MS), "one of more ns than an int has");
    close(timer);
    close(other);
}

static void signals(void)
{
    static const int wanted[] = {SIGUSR1, SIGUSR2};
    int fd = sr_signalfd_open(wanted, 2), signal = 0;
    pid_t pid = 0, child;
    ok(is_private(fd), "signals are read from a descriptor, close-on-exec");
    ok(!sr_signalfd_next(fd, &signal, &pid), "none has come");
    if ((child = fork()) == 0) {
        kill(getppid(), SIGUSR2);
        _exit(0);
    }
    ok(is_readable(fd, LONG_MS), "one comes");
    ok(sr_signalfd_next(fd, &signal, &pid) && signal == SIGUSR2 && pid == child,
       "which, and who has sent it");
    ok(!sr_signalfd_next(fd, &signal, &pid), "once");
    waitpid(child, NULL, 0);
    close(fd);
}

/* As the header of the PROXY protocol is, before TLS */
static void looked_at(int fd, int peer)
{
    char bytes[8];
    ok(send(peer, "PRO", 3, 0) == 3 && is_readable(fd, LONG_MS), "it sends three bytes");
    sr_sockets_readable_at(fd, 4);
    is_int(is_readable(fd, 50), ON_LINUX, "which a loop without edges does not report again");
    ok(send(peer, "X", 1, 0) == 1 && is_readable(fd, LONG_MS), "but with one more");
    sr_sockets_readable_at(fd, 1);
    is_int(recv(fd, bytes, 4, 0), 4, "they are read");
}

static void sockets(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}}, from;
    socklen_t len = sizeof at, from_len = sizeof from;
    int pair[2] = {-1, -1}, pipes[2] = {-1, -1}, listener = socket(AF_INET, SOCK_STREAM, 0), fd;
    char bytes[8];
    ok((fd = sr_sockets_unix(SOCK_STREAM)) >= 0 && is_private(fd) && !waits(fd), "a unix socket");
    close(fd);
    ok(sr_sockets_pair(SOCK_STREAM, pair) == 0 && is_private(pair[0]) && is_private(pair[1]) &&
           waits(pair[0]) && waits(pair[1]),
       "a pair of them, which blocks");
    ok(sr_sockets_pipe(pipes) == 0 && is_private(pipes[0]) && is_private(pipes[1]) && waits(pipes[0]),
       "a pipe");
    is_int(write(pipes[1], "x", 1), 1, "is written at its second end");
    is_int(read(pipes[0], bytes, 1), 1, "and read at its first");
    ok(bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 8) == 0 &&
           getsockname(listener, (struct sockaddr *)&at, &len) == 0,
       "a listener");
    fcntl(listener, F_SETFL, O_NONBLOCK);
    ok(sr_sockets_accept(listener, NULL, NULL) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK),
       "nobody is there");
    int client = socket(AF_INET, SOCK_STREAM, 0);
    ok(connect(client, (struct sockaddr *)&at, len) == 0 && is_readable(listener, LONG_MS), "a client");
    ok((fd = sr_sockets_accept(listener, (struct sockaddr *)&from, &from_len)) >= 0 && is_private(fd) &&
           !waits(fd) && from.sin_family == AF_INET,
       "is accepted, and does not block");
    is_int(sr_hangup(fd), 0, "its peer is there");
    looked_at(fd, client);
    is_int(write(client, "abc", 3), 3, "writes");
    ok(is_readable(fd, LONG_MS) && sr_hangup(fd) == 0, "and is there still");
    is_int(read(fd, bytes, sizeof bytes), 3, "its bytes are read");
    shutdown(client, SHUT_WR);
    ok(is_readable(fd, LONG_MS) && sr_hangup(fd) == POLLRDHUP, "ends its side");
    ok(sr_unsent_bytes(fd) >= 0, "unsent bytes");
    close(client);
    close(fd);
    close(listener);
    close(pipes[0]);
    close(pipes[1]);
    close(pair[0]);
    ok(sr_hangup(pair[1]) & POLLHUP, "the other end of a pair is closed");
    close(pair[1]);
}

static void files(void)
{
    int pair[2], fd = sr_tempfile_open(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    off_t at = 2;
    char bytes[16];
    sr_tempfile_write(fd, "0123456789", 10);
    sr_sockets_pair(SOCK_STREAM, pair);
    is_int(sr_sendfile(pair[0], fd, &at, 4), 4, "bytes of a file are sent");
    is_int(at, 6, "from where it says");
    is_int(read(pair[1], bytes, sizeof bytes), 4, "arrive");
    ok(memcmp(bytes, "2345", 4) == 0, "as they are");
    is_int(sr_sendfile(pair[0], fd, &at, 100), 4, "the rest");
    is_int(sr_sendfile(pair[0], fd, &at, 100), 0, "the end");
    close(pair[1]);
    at = 0;
    ok(sr_sendfile(pair[0], fd, &at, 4) < 0 && errno == EPIPE && at == 0, "nobody reads: no SIGPIPE");
    close(pair[0]);
    close(fd);
}

static void others(void)
{
    char a[32] = "", b[32] = "", none[32] = "";
    ok(sr_random(a, sizeof a) && sr_random_now(b, sizeof b) && memcmp(a, b, sizeof a) != 0 &&
           memcmp(a, none, sizeof a) != 0,
       "random bytes");
    sr_self_name("facilities");
    is_int(sr_self_nameless(), 0, "the process has a name");
    sr_self_readable(true);
    int fd = sr_inotify_open();
    if (fd >= 0) {
        ok(is_private(fd) && sr_inotify_add(fd, "/", 0x100 /* IN_CREATE */) >= 0, "folders are watched");
        close(fd);
    } else {
        ok(errno == ENOSYS, "folders can't be watched");
    }
    /* two in a row: lower numbers may be those that the thread of net/lookout.c is about to close */
    int from = fcntl(STDERR_FILENO, F_DUPFD, 100), to = fcntl(STDERR_FILENO, F_DUPFD, from + 1);
    sr_self_close(from, to);
    ok(to == from + 1 && ((fcntl(from, F_GETFD) < 0 && fcntl(to, F_GETFD) < 0) || fcntl(to, F_GETFD) >= 0),
       "a range of descriptors is closed where the system can");
}

int main(void)
{
    bells();
    timers();
    timers_of_children();
    signals();
    sockets();
    files();
    others();
    return done_testing();
}
