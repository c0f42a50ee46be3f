/* passing: messages with descriptors, also with more of them than there is room for */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net/passing.h"

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int pair[2];

static int lowest(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

/* Above 2 */
static int lowest_above_two(void)
{
    int fd = fcntl(1, F_DUPFD, 3);
    close(fd);
    return fd;
}

static int close_all(const int *fds, int n)
{
    int closed = 0;
    for (int i = 0; i < n; i++)
        closed += close(fds[i]) == 0;
    return closed;
}

/* Sends n descriptors; there is room for some */
static void passed(int n, int room, int32_t *pid)
{
    char byte = 0;
    int fds[SR_PASSING_MAX], got = room, before = lowest();
    for (int i = 0; i < n; i++)
        fds[i] = i % 2 ? 0 : 1;
    ok(sr_passing_send(pair[0], "x", 1, fds, n, MSG_DONTWAIT) == 1, "a byte with %d descriptors", n);
    ok(sr_passing_receive(pair[1], &byte, 1, fds, &got, pid, MSG_DONTWAIT) == 1,
       "is received, with room for %d", room);
    is_int(got, n < room ? n : room, "with as many as there is room for");
    ok(byte == 'x' && (!got || fcntl(fds[got - 1], F_GETFD) & FD_CLOEXEC), "which an exec closes");
    is_int(close_all(fds, got), got, "each is one");
    is_int(lowest(), before, "and no other stays open");
}

/* As in an application that has closed it */
static void below_three(void)
{
    char byte;
    int in = fcntl(0, F_DUPFD_CLOEXEC, 3), fds[2] = {1, 1}, got = 2;
    struct rlimit before, few;
    close(0);
    sr_passing_send(pair[0], "x", 1, fds, 2, 0);
    sr_passing_receive(pair[1], &byte, 1, fds, &got, NULL, 0);
    ok(got == 2 && fds[0] > 2 && fds[1] > 2, "nothing takes the place of STDIN");
    close_all(fds, got);
    getrlimit(RLIMIT_NOFILE, &before);
    few = (struct rlimit){(rlim_t)lowest_above_two(), before.rlim_max};
    fds[0] = fds[1] = 1;
    sr_passing_send(pair[0], "x", 1, fds, 2, 0);
    setrlimit(RLIMIT_NOFILE, &few);
    got = 2;
    sr_passing_receive(pair[1], &byte, 1, fds, &got, NULL, 0);
    setrlimit(RLIMIT_NOFILE, &before);
    is_int(got, 0, "nor where no other number is free");
    ok(fcntl(0, F_GETFD) < 0, "and it is free then");
    dup2(in, 0);
    close(in);
}

int main(void)
{
    int on = 1, got = 1, fds[1];
    int32_t pid = -1;
    char text[8];
    ok(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "a pair of sockets");
    passed(0, 4, NULL);
    passed(4, 4, NULL);
    passed(7, 3, NULL);
    passed(SR_PASSING_MAX, SR_PASSING_MAX, NULL);
    passed(SR_PASSING_MAX, 0, NULL);
    passed(2, 2, &pid);
    is_int(pid, 0, "the sender is not named");
    if (on_linux("the kernel names the sender", "SO_PASSCRED")) {
        setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
        passed(2, 2, &pid);
        is_int(pid, getpid(), "unless that was asked for");
        passed(6, 4, &pid);
        is_int(pid, getpid(), "nor do many descriptors hide it");
    }
    below_three();
    is_int(sr_passing_send(pair[0], "eight...", 8, NULL, 0, 0), 8, "more bytes");
    is_int(sr_passing_receive(pair[1], text, 4, fds, &got, NULL, MSG_TRUNC), 8, "than there is room for");
    ok(sr_passing_receive(pair[1], text, 4, fds, &got, NULL, MSG_DONTWAIT) < 0 && errno == EAGAIN && got == 0,
       "are one message");
    close(pair[1]);
    ok(sr_passing_send(pair[0], "x", 1, NULL, 0, 0) < 0 && errno == EPIPE, "nobody is there: no signal");
    return done_testing();
}
