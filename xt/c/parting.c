/*
 * parting: what a tunnel has left for its application, that reads all of it, some, nothing, or is gone; time
 * is an input
 */
#include "conn/parting.h"

#include "conn/lifetime.h"
#include "tap.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LIMIT = 10, LEFT = 50000 };

static sr_engine *e;
static const sr_config config = {.write_ns = LIMIT * SR_SECOND, .max_connections = 10};
static char bytes[1 << 20];

/*
 * A pair whose socket is full, and LEFT bytes more. *theirs is the application's end. Returns the bytes that
 * it may read.
 */
static size_t leave(int *theirs)
{
    sr_pump *p = sr_pump_new(NULL);
    size_t sent = 0;
    ssize_t n;
    ok(p && sr_pump_pair(p, theirs) == 0, "a pair");
    fcntl(*theirs, F_SETFL, O_NONBLOCK);
    while ((n = send(p->source.fd, bytes, 4096, MSG_DONTWAIT)) > 0)
        sent += (size_t)n;
    sr_buffer_add(&p->up, bytes, LEFT);
    e->passing += LEFT;
    e->n_lent++;
    sr_parting_begin(e, p);
    return sent + LEFT;
}

static void step(void)
{
    sr_partings_expire(e);
    sr_loop_wait(&e->loop, 0);
    for (const struct epoll_event *ev; (ev = sr_loop_next(&e->loop));)
        sr_parting_step(e, ev->data.ptr);
}

/* Reads up to so many bytes; *ends: the end of the file has come. */
static size_t take(int fd, size_t most, bool *ends)
{
    size_t got = 0;
    ssize_t n = -1;
    *ends = false;
    while (got < most && (n = read(fd, bytes, most - got < sizeof bytes ? most - got : sizeof bytes)) > 0)
        got += (size_t)n;
    *ends = n == 0;
    return got;
}

static bool nothing_is_left(void)
{
    return !e->passing && !e->n_lent && sr_partings_at(e) == INT64_MAX && sr_engine_over(e);
}

/* Reads so many bytes in each of so many ns, until there are no more: all is there. */
static void reads(int fd, size_t all, size_t each, int64_t ns, const char *name)
{
    bool ends = false;
    size_t got = 0;
    for (int i = 0; i < 1000 && !ends; i++) {
        got += take(fd, each, &ends);
        e->now += ns;
        step();
    }
    ok(got == all && ends, "%s, and then an end of file: %zu of %zu", name, got, all);
    ok(nothing_is_left(), "nothing is left");
    close(fd);
}

static void reads_all(void)
{
    int fd;
    size_t all = leave(&fd);
    ok(!sr_engine_over(e) && sr_partings_at(e) == e->now + LIMIT * SR_SECOND, "it has --write-timeout");
    ok(send(fd, "x", 1, MSG_NOSIGNAL) < 0, "nobody hears what it says");
    reads(fd, all, sizeof bytes, 0, "it reads all");
}

static void reads_nothing(void)
{
    int fd;
    bool ends;
    leave(&fd);
    e->now += LIMIT * SR_SECOND - 1;
    step();
    ok(!nothing_is_left(), "one that reads nothing has all the time");
    e->now++;
    step();
    ok(nothing_is_left(), "and no more");
    take(fd, sizeof bytes, &ends);
    ok(ends, "what it finds ends");
    close(fd);
}

/* So slowly that the kernel does not say that there is room */
static void reads_slowly(void)
{
    int fd;
    size_t all = leave(&fd);
    reads(fd, all, 4096, LIMIT * SR_SECOND, "one that reads 4 KiB in each of them has all");
}

static void closes(void)
{
    int fd;
    leave(&fd);
    close(fd);
    step();
    ok(nothing_is_left(), "one that closes its end: nothing is left");
}

/* Their limits are in order, and one that takes some goes to the end. */
static void several(void)
{
    int fd[3];
    bool ends;
    for (int i = 0; i < 3; i++) {
        leave(&fd[i]);
        e->now += SR_SECOND;
    }
    take(fd[0], 4096, &ends);
    e->now += (LIMIT - 3) * SR_SECOND;
    step();
    is_int((long long)e->n_lent, 3, "the first has taken some");
    is_int(sr_partings_at(e) - e->now, SR_SECOND, "the second is the next");
    e->now += SR_SECOND;
    step();
    is_int((long long)e->n_lent, 2, "which is over");
    for (int i = 0; i < 3; i++)
        close(fd[i]);
    step();
    ok(nothing_is_left(), "nothing is left");
}

int main(void)
{
    int fd;
    if (sr_engine_new(&e, &config, -1))
        return 1;
    e->now = 1000 * SR_SECOND;
    reads_all();
    reads_nothing();
    reads_slowly();
    closes();
    several();
    leave(&fd);
    sr_engine_free(e);
    ok(recv(fd, bytes, sizeof bytes, 0) > 0, "the end of the engine ends all");
    close(fd);
    return done_testing();
}
