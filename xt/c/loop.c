/* loop and descriptors: what happens when there are no descriptors, and how many there may be */
#include "net/loop.h"

#include "net/descriptors.h"
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
    ok(l.epoll > 2, "of a descriptor above 2");
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
    leave(0);
    is_int(sr_loop_init(&l), EMFILE, "no descriptors: no loop");
    ok(l.epoll == -1, "and nothing of one");
    leave(1);
    is_int(sr_loop_init(&l), 0, "one is enough");
    sr_loop_free(&l);
    sr_loop_free(&l);
    ok(l.epoll == -1, "freed, and once more");
    setrlimit(RLIMIT_NOFILE, &first);
}

static void events(void)
{
    sr_loop l;
    const struct epoll_event *ev;
    int p[2], q[2];
    sr_loop_init(&l);
    is_int(sr_loop_wait(&l, 0), 0, "nothing is there");
    ok(pipe(p) == 0 && pipe(q) == 0, "two pipes");
    sr_source s = {.fd = p[0]};
    is_int(sr_loop_add(&l, &s, EPOLLIN), 0, "is watched");
    ok(write(p[1], "x", 1) == 1 && sr_loop_wait(&l, 1000) == 1 && (ev = sr_loop_next(&l)) &&
           ev->data.ptr == &s,
       "its event leads to its source");
    ok(!sr_loop_next(&l), "and there is no other");
    is_int(sr_loop_wait(&l, 0), 1, "again, while nobody has read it");
    is_int(sr_loop_remove(&l, &s), 0, "no more");
    is_int(sr_loop_wait(&l, 0), 0, "when it is removed");
    sr_source other = {.fd = q[0]};
    ok(sr_loop_add(&l, &s, EPOLLIN) == 0 && sr_loop_add(&l, &other, EPOLLIN) == 0, "two are watched");
    ok(write(q[1], "x", 1) == 1 && sr_loop_wait(&l, 1000) == 2, "and have one event each");
    ev = sr_loop_next(&l);
    sr_loop_remove(&l, ev->data.ptr == &s ? &other : &s);
    ok(!sr_loop_next(&l), "that of a source that was removed meanwhile is not reported");
    for (int i = 0; i < 2; i++) {
        close(p[i]);
        close(q[i]);
    }
    sr_source none = {.fd = -1};
    is_int(sr_loop_add(&l, &none, EPOLLIN), EBADF, "no descriptor can't be watched");
    is_int(sr_loop_change(&l, &none, EPOLLIN), EBADF, "or changed");
    is_int(sr_loop_remove(&l, &none), EBADF, "or removed");
    sr_loop_free(&l);
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
    events();
    return done_testing();
}
