/* packets: messages with descriptors stay apart, and arrive whole or not at all */
#include "net/packets.h"

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { LONG = SR_PACKETS_MAX, ROOM = 4 };

static int ends[2];
static char text[LONG], got[LONG + 1];

static void open_pair(void)
{
    ok(sr_packets_pair(ends) == 0 && fcntl(ends[0], F_GETFD) & FD_CLOEXEC, "a pair, which an exec closes");
}

static void unblock(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static ssize_t receive(size_t len, int fds[ROOM], int *n)
{
    *n = ROOM;
    return sr_packets_receive(ends[1], got, len, fds, n);
}

/* Two that were sent before one is received; the second has descriptors */
static void stay_apart(void)
{
    int fds[ROOM], n, two[2] = {0, 1};
    ok(sr_packets_send(ends[0], "one", 3, NULL, 0) == 0, "a message is sent");
    ok(sr_packets_send(ends[0], "another", 7, two, 2) == 0, "and another with two descriptors");
    ssize_t len = receive(sizeof got, fds, &n);
    is_bytes(got, len > 0 ? (size_t)len : 0, "one", "the first is received");
    is_int(n, 0, "without descriptors");
    len = receive(4, fds, &n);
    is_bytes(got, len > 0 ? (size_t)len : 0, "anot", "of the second, what there is room for");
    is_int(n, 2, "and its descriptors");
    for (int i = 0; i < n; i++)
        close(fds[i]);
    unblock(ends[1]);
    ok(receive(sizeof got, fds, &n) < 0 && errno == EAGAIN && n == 0, "and no third");
}

static void *send_long(void *unused)
{
    (void)unused;
    for (size_t len = 1; len <= LONG; len += len / 3 + 500)
        if (sr_packets_send(ends[0], text, len, NULL, 0) != 0)
            return NULL;
    return text;
}

/* Longer than the buffers of the sockets together, to an end that does not block */
static void long_ones(void)
{
    int fds[ROOM], n, wrong = 0, count = 0;
    pthread_t sender;
    void *sent = NULL;
    for (size_t i = 0; i < LONG; i++)
        text[i] = (char)(i * 31 >> 3);
    if (pthread_create(&sender, NULL, send_long, NULL) != 0)
        exit(1);
    for (size_t want = 1; want <= LONG; want += want / 3 + 500, count++) {
        struct pollfd readable = {.fd = ends[1], .events = POLLIN};
        ssize_t len;
        while ((len = receive(sizeof got, fds, &n)) < 0 && errno == EAGAIN && poll(&readable, 1, 10000) > 0)
            ;
        wrong += len != (ssize_t)want || memcmp(got, text, want) != 0;
    }
    pthread_join(sender, &sent);
    ok(sent && count > 10, "%d messages of up to %d KiB are sent", count, LONG / 1024);
    is_int(wrong, 0, "each arrives whole");
}

/* What is not sent leaves nothing of it behind */
static void full(void)
{
    int fds[ROOM], n, sent = 0, received = 0;
    unblock(ends[0]);
    while (sent < 100000 && sr_packets_send(ends[0], text, 100, NULL, 0) == 0)
        sent++;
    ok(errno == EAGAIN && sent > 0 && sent < 100000, "without room: EAGAIN");
    while (receive(sizeof got, fds, &n) == 100)
        received++;
    is_int(received, sent, "as many are received as were sent");
    ok(sr_packets_send(ends[0], "x", 1, NULL, 0) == 0 && receive(sizeof got, fds, &n) == 1,
       "and then the next one");
}

static void end(void)
{
    int fds[ROOM], n;
    ok(sr_packets_send(ends[1], "unread", 6, NULL, 0) == 0, "an end that has not read all");
    ok(sr_packets_send(ends[0], "last", 4, NULL, 0) == 0 && close(ends[0]) == 0, "is closed");
    is_int(receive(sizeof got, fds, &n), 4, "what it had sent is still there");
    is_int(receive(sizeof got, fds, &n), 0, "then the end");
    ok(sr_packets_send(ends[1], "x", 1, NULL, 0) < 0 && errno == EPIPE, "nobody is there: no signal");
    close(ends[1]);
}

#ifdef SR_PORTABLE
/* A sender that has stopped, or ends, in the middle of a message. Nobody waits for it */
static void cut(void)
{
    int fds[ROOM], n;
    char half[] = "\5\0\0\0one", rest[] = "..", begun[] = "\5\0", wrong[] = "\0\0\0\1";
    open_pair();
    unblock(ends[1]);
    ok(write(ends[0], half, sizeof half - 1) > 0 && receive(sizeof got, fds, &n) < 0 && errno == EAGAIN,
       "part of a message");
    ok(write(ends[0], rest, 2) == 2, "and the rest");
    is_int(receive(sizeof got, fds, &n), 5, "are received together");
    ok(write(ends[0], begun, 2) == 2 && receive(sizeof got, fds, &n) < 0 && errno == EAGAIN,
       "part of a length");
    close(ends[0]);
    is_int(receive(sizeof got, fds, &n), 0, "and nothing more: the end");
    close(ends[1]);
    open_pair();
    unblock(ends[1]);
    ok(write(ends[0], wrong, 4) == 4 && receive(sizeof got, fds, &n) == 0,
       "a length that cannot be: the end");
    ok(sr_packets_send(ends[0], "x", 1, NULL, 0) < 0 && errno == EPIPE, "at both ends");
    close(ends[0]);
    close(ends[1]);
}
#endif

/* To one that does not read: nothing is sent in part, and nobody waits */
static void stopped(void)
{
    int fds[ROOM], n, sent = 0, received = 0;
    open_pair();
    unblock(ends[0]);
    unblock(ends[1]);
    while (sent < 100 && sr_packets_send(ends[0], text, LONG, NULL, 0) == 0)
        sent++;
    ok(sent > 0 && sent < 100 && errno == EAGAIN, "the longest has room, some more have not");
    while (receive(sizeof got, fds, &n) == LONG && memcmp(got, text, LONG) == 0)
        received++;
    is_int(received, sent, "those that were sent are received");
    ok(sr_packets_send(ends[0], text, LONG, NULL, 0) == 0 && receive(sizeof got, fds, &n) == LONG,
       "and the next one");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    open_pair();
    stay_apart();
    long_ones();
    full();
    end();
    stopped();
#ifdef SR_PORTABLE
    cut();
#endif
    return done_testing();
}
