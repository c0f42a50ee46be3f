/* loop and descriptors: what happens when there are no descriptors, and how many there may be */
#include "net/loop.h"

#include "net/descriptors.h"
#include "net/exchange.h"
#include "net/tempfile.h"
#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct rlimit first;

/* Room for so many descriptors more */
static void leave(int n)
{
    setrlimit(RLIMIT_NOFILE, &first);
    int lowest = dup(0);
    close(lowest);
    struct rlimit few = {(rlim_t)(lowest + n), first.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
}

static void descriptors(void)
{
    struct rlimit now, half = {64, first.rlim_max};
    setrlimit(RLIMIT_NOFILE, &half);
    ok(sr_descriptors_raise() == first.rlim_max, "as many descriptors as may be");
    ok(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == first.rlim_max, "are allowed then");
    ok(sr_descriptors_raise() == first.rlim_max, "and again");
}

static void lowest(void)
{
    int fd = dup(0);
    leave(4);
    is_int(sr_descriptors_limit(), sr_descriptors_lowest(0) + 4, "four are free");
    close(fd);
    is_int(sr_descriptors_lowest(0), fd, "and one below them");
    leave(0);
    is_int(sr_descriptors_lowest(0), fd, "none is, up to the limit");
    setrlimit(RLIMIT_NOFILE, &first);
    is_int(sr_descriptors_lowest(0), fd, "nothing stays open");
}

/* An application may close 0 to 2 and take them for itself: nothing of the server may be there. */
static void above(void)
{
    sr_loop l;
    int fd = dup(0), in = fcntl(0, F_DUPFD, 3);
    close(fd);
    close(0);
    is_int(sr_descriptors_lowest(1), fd, "0 is free, and is not the lowest");
    int file = sr_tempfile_open("/tmp"), copy = sr_descriptors_above(dup(1));
    ok(file > 2 && copy > 2, "a temporary file and a copy above 2");
    is_int(sr_loop_init(&l), 0, "a loop");
    ok(l.epoll > 2 && l.wake.fd > 2, "of descriptors above 2");
    ok(fcntl(0, F_GETFD) < 0, "0 is free still");
    sr_loop_free(&l);
    close(file);
    close(copy);
    dup2(in, 0);
    close(in);
}

static void none_left(void)
{
    sr_loop l;
    sr_exchange x = {-1, -1};
    for (int n = 0; n < 2; n++) {
        leave(n);
        is_int(sr_loop_init(&l), EMFILE, "no descriptors: no loop");
        ok(l.epoll == -1 && l.wake.fd == -1, "and nothing of one");
        is_int(sr_exchange_open(&x), EMFILE, "no exchange");
        ok(x.give == -1 && x.take == -1, "and nothing of one");
    }
    leave(2);
    is_int(sr_loop_init(&l), 0, "two are enough for a loop");
    sr_loop_free(&l);
    sr_loop_free(&l);
    ok(l.epoll == -1, "freed, and once more");
    is_int(sr_exchange_open(&x), 0, "and for an exchange");
    sr_exchange_close(&x);
    sr_exchange_close(&x);
    setrlimit(RLIMIT_NOFILE, &first);
}

static void waking(void)
{
    sr_loop l;
    struct epoll_event events[SR_LOOP_EVENTS];
    sr_loop_init(&l);
    is_int(sr_loop_wait(&l, events, 0), 0, "nothing is there");
    errno = 4711;
    sr_loop_wake(&l);
    sr_loop_wake(&l);
    is_int(errno, 4711, "waking leaves errno alone: a signal handler does it");
    is_int(sr_loop_wait(&l, events, 1000), 1, "two wake-ups are one event");
    ok(events[0].data.ptr == &l.wake, "of the loop's own source");
    sr_loop_woken(&l);
    is_int(sr_loop_wait(&l, events, 0), 0, "which is over then");
    sr_loop_woken(&l);
    sr_source s = {.fd = -1};
    is_int(sr_loop_add(&l, &s, EPOLLIN), EBADF, "no descriptor can't be watched");
    is_int(sr_loop_change(&l, &s, EPOLLIN), EBADF, "or changed");
    is_int(sr_loop_remove(&l, &s), EBADF, "or removed");
    sr_loop_free(&l);
}

static void nobody_takes(void)
{
    sr_exchange x;
    sr_parcel p = {0};
    int fd = 0;
    sr_bytes parts[5] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}};
    sr_exchange_open(&x);
    p.bytes = 5;
    ok(sr_exchange_give(&x, &p, 1, &fd, 1, parts, 5) == SR_EXCHANGE_FAILED && errno == EMSGSIZE,
       "a message of five parts is too much");
    close(x.take);
    x.take = -1;
    ok(sr_exchange_give(&x, &p, 1, &fd, 1, parts, 4) == SR_EXCHANGE_FAILED && errno == EPIPE,
       "the other end is gone");
    sr_exchange_close(&x);
}

int main(void)
{
    getrlimit(RLIMIT_NOFILE, &first);
    for (int fd = 3; fd < 1024; fd++) /* what was inherited would be in the way of counting */
        close(fd);
    none_left();
    descriptors();
    lowest();
    above();
    waking();
    nobody_takes();
    return done_testing();
}
