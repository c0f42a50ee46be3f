#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* posix_openpt */
#endif
/* outlet: a log whose reader has stalled, comes back, or has gone */
#include "log/outlet.h"

#include "base/clock.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static char text[1 << 20];

static size_t drain(int fd)
{
    size_t len = 0;
    ssize_t n;
    while ((n = read(fd, text + len, sizeof text - len)) > 0)
        len += (size_t)n;
    return len;
}

/* The reader does not block; the writer does, as STDERR would */
static void pair(int fd[2], bool socket)
{
    int err = socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) : pipe(fd);
    ok(err == 0 && fcntl(fd[0], F_SETFL, O_NONBLOCK) == 0, socket ? "a socket" : "a pipe");
}

static void fill(char *line, size_t size, char with)
{
    memset(line, with, size);
    line[size - 1] = '\n';
}

static void stalls(bool socket)
{
    int fd[2];
    sr_outlet o = {0};
    static char line[5000];
    fill(line, sizeof line, 'a');
    pair(fd, socket);
    is_int(sr_outlet_write(&o, fd[1], "one\n", 4), 0, "a line is written");
    int err = 0, wrote = 0;
    while (!(err = sr_outlet_write(&o, fd[1], line, sizeof line)) && wrote < 10000)
        wrote++;
    ok(err == EAGAIN && o.stalled && o.lost == 1, "until nobody reads");
    ok(!sr_outlet_returns(&o, fd[1]) || o.torn, "there is no room");
    int64_t began = sr_clock_monotonic();
    for (int i = 0; i < 1000; i++)
        sr_outlet_write(&o, fd[1], "two\nthree\n", 10);
    ok(sr_clock_monotonic() - began < 10 * SR_SECOND, "which is waited for once, not a thousand times");
    ok(o.lost > 1000, "the lines are counted"); /* some fit into the last page of a pipe */
    size_t len = drain(fd[0]);
    ok(sr_outlet_returns(&o, fd[1]), "the reader has come back");
    is_int(sr_outlet_write(&o, fd[1], "four\n", 5), 0, "a line is written again");
    size_t more = drain(fd[0]);
    ok(more >= 5 && memcmp(text + more - 5, "four\n", 5) == 0, "as it is");
    ok(more == 5 || (more == 6 && *text == '\n'), "on a line of its own");
    (void)len;
    close(fd[0]);
    err = sr_outlet_write(&o, fd[1], "five\n", 5);
    ok(err == EPIPE || err == ECONNRESET, "without a signal when the reader has gone");
    close(fd[1]);
}

static void part(void)
{
    int fd[2];
    sr_outlet o = {0};
    static char line[300000];
    fill(line, sizeof line, 'b');
    pair(fd, false);
    is_int(sr_outlet_write(&o, fd[1], line, sizeof line), EAGAIN, "a line that is larger than the pipe");
    ok(o.torn && o.lost == 1, "is written in part");
    size_t len = drain(fd[0]);
    ok(len > 0 && text[len - 1] == 'b', "without its end");
    is_int(sr_outlet_write(&o, fd[1], "next\n", 5), 0, "the next line");
    is_int((long long)drain(fd[0]), 6, "has a newline before it");
    is_bytes(text, 6, "\nnext\n", "and is whole");
    ok(!o.torn && !o.stalled, "all is well again");
    close(fd[0]);
    close(fd[1]);
}

/* A short line fits into the last page of a pipe whose reader has stalled */
static void mixed(void)
{
    int fd[2];
    sr_outlet o = {0};
    static char line[3000];
    fill(line, sizeof line, 'd');
    pair(fd, false);
    while (!sr_outlet_write(&o, fd[1], line, sizeof line))
        ;
    int64_t began = sr_clock_monotonic();
    for (int i = 0; i < 100; i++) {
        sr_outlet_write(&o, fd[1], "short\n", 6);
        sr_outlet_write(&o, fd[1], line, sizeof line);
    }
    ok(sr_clock_monotonic() - began < 5 * SR_SECOND, "long lines behind short ones do not wait again");
    is_int((long long)o.lost, 201, "all are lost");
    size_t len = drain(fd[0]);
    is_int(sr_outlet_write(&o, fd[1], "back\n", 5), 0, "until the reader is back");
    (void)len;
    close(fd[0]);
    close(fd[1]);
}

static void terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY), err = 0, n = 0;
    ok(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "a terminal");
    int slave = open(ptsname(master), O_WRONLY | O_NOCTTY);
    sr_outlet o = {0};
    static char line[150];
    fill(line, sizeof line, 'e');
    alarm(60);
    while (!(err = sr_outlet_write(&o, slave, line, sizeof line)) && ++n < 100000)
        ;
    is_int(err, EAGAIN, "that nobody reads does not hold up the writer");
    sr_outlet_write(&o, slave, line, sizeof line);
    alarm(0);
    ok(fcntl(master, F_SETFL, O_NONBLOCK) == 0 && drain(master) > 0, "it is read again");
    is_int(sr_outlet_write(&o, slave, "back\n", 5), 0, "and written to");
    ok(!(fcntl(slave, F_GETFL) & O_NONBLOCK), "the descriptor waits as before");
    close(slave);
    close(master);
}

static void others(void)
{
    sr_outlet o = {0};
    char path[] = "/tmp/sirius-outlet-XXXXXX";
    int fd = mkstemp(path), null = open("/dev/null", O_WRONLY), full = open("/dev/full", O_WRONLY);
    unlink(path);
    static char line[200000];
    memset(line, 'c', sizeof line);
    is_int(sr_outlet_write(&o, fd, line, sizeof line), 0, "a file");
    is_int((long long)lseek(fd, 0, SEEK_END), sizeof line, "has all of it");
    is_int(sr_outlet_write(&o, null, line, sizeof line), 0, "/dev/null");
    is_int(sr_outlet_write(&o, full, "x\n", 2), ENOSPC, "a full disk");
    close(fd);
    is_int(sr_outlet_write(&o, fd, "x\n", 2), EBADF, "a closed descriptor");
    ok(!o.stalled && !o.lost, "none of them has stalled");
    close(null);
    close(full);
}

/* Several processes, a terminal whose reader keeps up, and lines that it takes in parts */
static void terminal_of_many(void)
{
    enum { WRITERS = 4, LINES = 90, LEN = 301 };
    int master = posix_openpt(O_RDWR | O_NOCTTY), whole = 0, mixed = 0, status;
    ok(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "a terminal");
    int slave = open(ptsname(master), O_WRONLY | O_NOCTTY);
    struct termios raw;
    ok(tcgetattr(slave, &raw) == 0, "which is asked");
    cfmakeraw(&raw);
    tcsetattr(slave, TCSANOW, &raw);
    sr_outlet o = {.shared = sr_outlet_share()};
    pid_t pid[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        if ((pid[i] = fork()) != 0)
            continue;
        char line[LEN];
        fill(line, sizeof line, (char)('a' + i));
        for (int n = 0; n < LINES; n++)
            sr_outlet_write(&o, slave, line, sizeof line);
        _exit(o.lost > 100 ? 100 : (int)o.lost);
    }
    close(slave);
    size_t len = 0, lost = 0;
    ssize_t n;
    while ((n = read(master, text + len, sizeof text - len)) > 0)
        len += (size_t)n;
    for (int i = 0; i < WRITERS; i++)
        if (waitpid(pid[i], &status, 0) == pid[i])
            lost += (size_t)WEXITSTATUS(status);
    for (const char *at = text, *end; (end = memchr(at, '\n', (size_t)(text + len - at))); at = end + 1) {
        bool same =
            true; /* a part of a line stands alone: its writer was kept waiting, and has counted it as lost */
        for (const char *p = at; same && p < end; p++)
            same = *p == *at;
        whole += same && end - at == LEN - 1;
        mixed += !same;
    }
    is_int(mixed, 0, "no lines are mixed");
    is_int(whole + (long long)lost, (long long)WRITERS * LINES, "all are whole");
    close(master);
}

/* Begins a line in another process, of which the pipe takes only a part */
static pid_t begin(int fd[2], const sr_outlet *shared)
{
    static char line[300000];
    pair(fd, false);
    pid_t pid = fork();
    if (pid == 0) {
        sr_outlet own = *shared;
        fill(line, sizeof line, 'f');
        sr_outlet_write(&own, fd[1], line, sizeof line);
        _exit(own.lost == 1 ? 0 : 1);
    }
    while (poll(&(struct pollfd){.fd = fd[1], .events = POLLOUT}, 1, 0) == 1) /* it is not full yet */
        usleep(1000);
    return pid;
}

static void part_of_another(const char *how, int sig)
{
    sr_outlet o = {.shared = sr_outlet_share()};
    int fd[2], status = 0;
    pid_t pid = begin(fd, &o);
    if (sig)
        kill(pid, sig);
    if (sig != SIGSTOP)
        waitpid(pid, &status, 0);
    ok(sig || status == 0, how);
    size_t len = drain(fd[0]);
    ok(len > 0 && text[len - 1] == 'f', "part of its line is read");
    int64_t began = sr_clock_monotonic();
    is_int(sr_outlet_write(&o, fd[1], "next\n", 5), 0, "another one writes");
    ok(sr_clock_monotonic() - began < (sig == SIGSTOP ? 900 : 90) * SR_MILLISECOND, "soon");
    is_int((long long)drain(fd[0]), 6, "on a line of its own");
    is_bytes(text, 6, "\nnext\n", "which is whole");
    if (sig == SIGSTOP) {
        kill(pid, SIGCONT);
        waitpid(pid, &status, 0);
        is_int(status, 0, "the first one goes on, and knows that it has lost a line");
        is_int((long long)drain(fd[0]), 0, "of which no more is written");
    }
    is_int(sr_outlet_write(&o, fd[1], "last\n", 5), 0, "again");
    is_int((long long)drain(fd[0]), 5, "with nothing before it");
    close(fd[0]);
    close(fd[1]);
}

/* The memory is about one file: what is torn in a pipe is no matter of another one */
static void another_file(void)
{
    sr_outlet o = {.shared = sr_outlet_share()}, second = o;
    int fd[2], other[2], status;
    waitpid(begin(fd, &o), &status, 0);
    pair(other, false);
    is_int(sr_outlet_write(&second, other[1], "there\n", 6), 0, "another pipe");
    is_int((long long)drain(other[0]), 6, "has its line alone");
    for (int i = 0; i < 2; i++) {
        close(fd[i]);
        close(other[i]);
    }
}

int main(void)
{
    stalls(false);
    stalls(true);
    part();
    mixed();
    terminal();
    terminal_of_many();
    part_of_another("a process whose reader has stalled", 0);
    part_of_another("a process that is killed", SIGKILL);
    part_of_another("a process that is stopped", SIGSTOP);
    another_file();
    others();
    return done_testing();
}
