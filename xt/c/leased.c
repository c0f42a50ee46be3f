/*
 * leased: files that are being sent, and that somebody wants to write to. The clock is that of the test: time
 * for a copy counts from when it was noticed that somebody waits. No byte of another content is sent,
 * whatever comes when
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "conn/leased.h"
#include "conn/engine.h"
#include "conn/lifetime.h"
#include "conn/output.h"
#include "net/lease.h"
#include "share/door.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 3 * 1024 * 1024, STEPS = SIZE / (1024 * 1024) };

static sr_engine *e;
static char *data, *got;

/* A response that is being sent: `size` bytes of a file of `byte` */
typedef struct sending {
    char path[32];
    char byte;
    int pair[2];
    sr_output *out;
    size_t got;
} sending;

static void fill(const char *path, char byte, int flags)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | flags);
    memset(data, byte, SIZE);
    if (fd < 0 || write(fd, data, SIZE) != SIZE)
        abort();
    close(fd);
}

static void again(sending *s, const char *path, char byte)
{
    int in = open(path, O_RDONLY | O_CLOEXEC), lease = sr_lease_take(in, getpid(), SR_DOOR_LEASE);
    if (lease < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, s->pair) != 0)
        abort();
    close(in);
    s->byte = byte;
    s->got = 0;
    s->out = sr_output_new();
    sr_output_file(s->out, lease, 0, SIZE);
    sr_leased_add(e, s->out);
}

static void begin(sending *s, char byte)
{
    strcpy(s->path, "/tmp/sirius-leased-XXXXXX");
    close(mkstemp(s->path));
    fill(s->path, byte, O_TRUNC);
    again(s, s->path, byte);
}

static void end(sending *s)
{
    sr_output_free(s->out);
    close(s->pair[0]);
    close(s->pair[1]);
    unlink(s->path);
}

/* Somebody opens the file to write, and does not wait: the kernel does the same as for who does */
static void want(const sending *s)
{
    int fd = open(s->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 || errno != EWOULDBLOCK)
        abort();
    e->leased.asked = true; /* the signal says so */
}

/* What the kernel does when its time is over: the lease is gone, and somebody writes to the file. */
static void lose(const sending *s)
{
    if (sr_lease_give_back(s->out->fd) != SR_LEASE_RETURNED)
        abort();
    fill(s->path, 'X', 0);
}

static void at(int64_t seconds, int steps)
{
    e->now = seconds * SR_SECOND;
    for (int i = 0; i < steps && sr_leased_waits(&e->leased); i++)
        sr_leased_step(e);
}

static bool copied(const sending *s)
{
    return s->out->copy && s->out->fd >= 0;
}

static bool is_cut(const sending *s)
{
    return !s->out->copy && s->out->fd < 0;
}

/* Sends and reads what there is. False: a byte of another content has come. */
static bool sound(sending *s, sr_flush *last)
{
    uint64_t sent = 0;
    for (int idle = 0; idle < 3;) {
        *last = sr_output_flush(s->out, s->pair[0], &sent);
        ssize_t n = read(s->pair[1], got, SIZE);
        for (ssize_t i = 0; i < n; i++)
            if (got[i] != s->byte)
                return false;
        s->got += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
    }
    return true;
}

static void complete(sending *s, const char *name)
{
    sr_flush last;
    ok(sound(s, &last) && last == SR_FLUSH_DONE && s->got == SIZE, "%s: whole, as it was", name);
}

static void cut(sending *s, const char *name)
{
    sr_flush last;
    ok(sound(s, &last) && last == SR_FLUSH_SHORT && s->got < SIZE, "%s: cut, and no byte is of another",
       name);
}

static void one(void)
{
    sending a;
    sr_flush last;
    uint64_t sent = 0;
    begin(&a, 'a');
    at(0, 9);
    ok(!sr_leased_waits(&e->leased), "a lease that nobody wants back is no work");
    sr_output_flush(a.out, a.pair[0], &sent);
    ok(sent > 0, "and the file is sent");
    want(&a);
    ok(sound(&a, &last) && last == SR_FLUSH_AGAIN && a.got == sent,
       "nothing more of it while somebody waits, also before the signal is read");
    at(1, STEPS + 1);
    ok(copied(&a) && !sr_leased_waits(&e->leased), "it is copied");
    fill(a.path, 'X', 0);
    complete(&a, "a file that is written to then");
    end(&a);
}

/*
 * The time of the second counts from the same moment as that of the first, not from when the first is done.
 */
static void several(void)
{
    sending a, b;
    begin(&a, 'a');
    begin(&b, 'b');
    want(&a);
    want(&b);
    at(100, 1);
    at(138, STEPS - 1);
    ok(copied(&a) && !copied(&b), "two at once: one in 38 seconds");
    at(139, 1);
    ok(!is_cut(&b), "the other one has two more");
    at(141, 2);
    ok(is_cut(&b) && !sr_leased_waits(&e->leased), "and is cut then");
    int fd = open(b.path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    ok(fd >= 0, "who waits gets in at once");
    close(fd);
    fill(b.path, 'X', 0);
    complete(&a, "the first");
    cut(&b, "the second");
    end(&a);
    end(&b);
}

/* Not the first in the list, but the one for whom somebody has waited for longest */
static void order(void)
{
    sending a, b, c;
    begin(&a, 'a');
    begin(&b, 'b');
    begin(&c, 'c');
    want(&b);
    at(200, 1);
    want(&c);
    at(205, 1);
    want(&a);
    at(230, STEPS - 2);
    ok(copied(&b) && !copied(&a) && !copied(&c), "one of three");
    at(244, STEPS);
    ok(copied(&c) && !copied(&a), "then the one whose time is over first");
    at(269, STEPS);
    ok(copied(&a), "then the last, within its own time");
    complete(&a, "a");
    complete(&b, "b");
    complete(&c, "c");
    end(&a);
    end(&b);
    end(&c);
}

/* The kernel's time was over without the engine, which was stopped. */
static void lost(void)
{
    sending a, b, c;
    sr_flush last;
    begin(&a, 'a');
    lose(&a);
    ok(sound(&a, &last) && last == SR_FLUSH_AGAIN && !a.got, "changed before anybody has noticed: not sent");
    e->leased.asked = true;
    at(300, 2 * STEPS);
    cut(&a, "nor is its copy");
    end(&a);
    begin(&b, 'b');
    want(&b);
    at(400, 1);
    lose(&b);
    at(401, 2 * STEPS);
    cut(&b, "changed while the copy was made");
    end(&b);
    begin(&c, 'c');
    want(&c);
    at(500, 1);
    at(541, 1);
    cut(&c, "too late in the middle of its copy");
    end(&c);
}

/* Others of the same file: one copy for all, and each has its own lease. */
static void shared(void)
{
    sending a, b;
    sr_flush last;
    begin(&a, 'a');
    again(&b, a.path, 'a');
    uint64_t sent = 0;
    sr_output_flush(b.out, b.pair[0], &sent);
    want(&a);
    at(600, STEPS);
    ok(copied(&a) && copied(&b) && a.out->copy == b.out->copy, "one copy for two");
    fill(a.path, 'X', 0);
    ok(sound(&b, &last) && b.got == SIZE, "for each from where it is");
    complete(&a, "the other");
    *b.path = '\0';
    end(&b);
    end(&a);
}

int main(void)
{
    if (!on_linux("all of it", "leases"))
        return done_testing();
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SR_DOOR_LEASE);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sr_config config = {.tmpdir = "/tmp"};
    data = malloc(SIZE);
    got = malloc(SIZE);
    if (sr_engine_new(&e, &config, -1) != 0)
        return 1;
    one();
    several();
    order();
    lost();
    shared();
    sr_engine_free(e);
    free(data);
    free(got);
    return done_testing();
}
