/*
 * joined: small pieces of a response that a worker has said at once are sent at once. What the client gets is
 * the same as if each had been sent alone, whatever stands between them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edge/edge.h"
#include "edge/setup.h"
#include "share/memory.h"
#include "worker/worker.h"

#include "edge_site.h"
#include "tap.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 64 };

static int took[2], go[2], said[2];

/* --- what the edge sends: these stand before those of the C library --- */

static int sends;

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    sends++;
    return syscall(SYS_sendmsg, fd, m, flags);
}

ssize_t send(int fd, const void *at, size_t len, int flags)
{
    sends++;
    return syscall(SYS_sendto, fd, at, len, flags, NULL, 0);
}

/* --- what a worker says to its one request --- */

static sr_worker w;

static void head(uint64_t length)
{
    sr_reply_head h = {.status = 200, .length = length, .app_length = SR_REPLY_LENGTH_UNKNOWN};
    sr_worker_reply(&w, &h, SR_BYTES(""), NULL, 0, 0);
}

static void piece(const char *at, size_t len)
{
    struct iovec iov = {(char *)(uintptr_t)at, len};
    sr_worker_write(&w, &iov, 1, false);
}

static void pieces(int n)
{
    for (int i = 0; i < n; i++)
        piece("0123456789", 10);
}

static const char *large(void)
{
    static char text[10000];
    memset(text, 'l', sizeof text);
    return text;
}

static void chunks(void)
{
    head(SR_REPLY_LENGTH_UNKNOWN);
    pieces(500);
    sr_worker_say(&w, SR_REPLY_END);
}

static void many(void)
{
    head(SR_REPLY_LENGTH_UNKNOWN);
    pieces(1200);
    sr_worker_say(&w, SR_REPLY_END);
}

static void length(void)
{
    head(500);
    pieces(50);
    sr_worker_say(&w, SR_REPLY_END);
}

static void too_long(void)
{
    head(25);
    pieces(50);
    sr_worker_say(&w, SR_REPLY_END);
}

static void logged(void)
{
    head(40);
    pieces(2);
    sr_worker_log(&w, SR_BYTES("\1\0\0\0\0\0\0\0"));
    pieces(2);
    sr_worker_say(&w, SR_REPLY_END);
}

static void mixed(void)
{
    head(10020);
    pieces(1);
    piece(large(), 10000);
    pieces(1);
    sr_worker_say(&w, SR_REPLY_END);
}

static void cut(void)
{
    head(SR_REPLY_LENGTH_UNKNOWN);
    pieces(3);
    sr_worker_say(&w, SR_REPLY_CUT);
}

static void unfinished(void)
{
    head(SR_REPLY_LENGTH_UNKNOWN);
    pieces(3);
}

static void file(void)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    if (write(fd, "of a file", 9) != 9)
        _exit(7);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int reads = open(path, O_RDONLY | O_CLOEXEC); /* with a handle that writes there is no lease */
    close(fd);
    head(9);
    if (!sr_worker_file(&w, reads, 0, 9))
        _exit(8);
    close(reads);
    sr_worker_say(&w, SR_REPLY_END);
}

static void never(void)
{
    head(SR_REPLY_LENGTH_UNKNOWN);
    pieces(3);
    head(SR_REPLY_LENGTH_UNKNOWN); /* a second one cannot be */
}

enum { CHUNKED = 1, ENDS = 2, FILE_OF = 4, LARGE = 8, MISUSE = 16 };

static const struct reply {
    const char *name;
    void (*say)(void);
    size_t bytes; /* of the pieces */
    int sends;    /* at most */
    int flags;
} replies[] = {
    {"500 pieces, chunked", chunks, 5000, 1, CHUNKED},
    {"1,200 pieces, more than are kept at a time", many, 12000, 2, CHUNKED},
    {"50 pieces with a length", length, 500, 1, 0},
    {"more than the length: cut there", too_long, 25, 1, 0},
    {"a value for the log between them", logged, 40, 1, 0},
    {"small, large, small", mixed, 20, 2, LARGE},
    {"cut behind three", cut, 30, 2, CHUNKED | ENDS},
    {"three, and the worker goes on", unfinished, 30, 1, CHUNKED | MISUSE},
    {"a head and a file", file, 0, 2, FILE_OF} /* no sendfile: its pages could change */,
    {"three, and what cannot be", never, 30, 2, CHUNKED | ENDS},
};
enum { REPLIES = sizeof replies / sizeof *replies };

/* Each by a worker of its own: the last of them is not believed any more */
static _Noreturn void run_worker(uint32_t row)
{
    char byte = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    worker_open(&w, row);
    while (sr_worker_next(&w) != SR_WORKER_REQUEST)
        ;
    if (write(took[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1)
        _exit(9);
    replies[row].say();
    sr_worker_flush(&w);
    if (write(said[1], &byte, 1) != 1)
        _exit(9);
    for (;;)
        pause();
}

/* --- the edge, in this process --- */

static char got[100000], want[100000];
static size_t got_len, want_len;

static void wants(const char *at, size_t len)
{
    memcpy(want + want_len, at, len);
    want_len += len;
}

/* The body as it stands on the wire */
static void wanted(const struct reply *r)
{
    size_t left = r->bytes;
    want_len = 0;
    for (bool first = true; left; first = false) {
        size_t n = left < 10 ? left : 10;
        if (!first && r->flags & LARGE)
            wants(large(), 10000);
        if (r->flags & CHUNKED)
            wants("a\r\n", 3);
        wants("0123456789", n);
        if (r->flags & CHUNKED)
            wants("\r\n", 2);
        left -= n;
    }
    if (r->flags & CHUNKED && !(r->flags & (ENDS | MISUSE)))
        wants("0\r\n\r\n", 5);
    if (r->flags & FILE_OF)
        wants("of a file", 9);
}

/* Turns until the client has that many bytes of a body, or the end */
static const char *receive(sr_edge *ed, int fd, bool *ended)
{
    const char *body = NULL;
    got_len = 0;
    *ended = false;
    for (int ms = 0; ms < PATIENCE_MS && !*ended; ms++) {
        sr_edge_step(ed, false);
        while (!*ended && readable(fd, body ? 0 : 1)) {
            ssize_t n = recv(fd, got + got_len, sizeof got - 1 - got_len, 0);
            *ended = n <= 0;
            got_len += n > 0 ? (size_t)n : 0;
        }
        got[got_len] = '\0';
        body = strstr(got, "\r\n\r\n");
        if (body && (size_t)(got + got_len - body) - 4 >= want_len && (*ended || ms > 50))
            break;
    }
    return body ? body + 4 : got;
}

static void reply(sr_edge *ed, uint32_t row)
{
    const struct reply *r = &replies[row];
    char byte = 0;
    bool ended;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid)
        run_worker(row);
    int fd = client_of("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    bool taken = turn_until(ed, took[0]);
    ok(taken && write(go[1], &byte, 1) == 1 && readable(said[0], PATIENCE_MS) && read(said[0], &byte, 1) == 1,
       "%s: its worker has said it", r->name);
    sends = 0;
    wanted(r);
    const char *body = receive(ed, fd, &ended);
    size_t len = (size_t)(got + got_len - body);
    if (!ok(len == want_len && memcmp(body, want, len) == 0, "%s: it is what the client gets", r->name)) {
        tap_bytes("got ", got, got_len);
        tap_bytes("want", want, want_len);
    }
    ok(ended == !!(r->flags & ENDS), "%s: the connection %s", r->name, ended ? "ends" : "stays");
    if (!ok(sends <= r->sends, "%s: by %d calls at most", r->name, r->sends))
        printf("# got %d\n", sends);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    if (r->flags & MISUSE)
        receive(ed, fd, &ended);
    close(fd);
    for (int i = 0; i < 20; i++)
        sr_edge_step(ed, false);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (!site_open(ROWS) || pipe(took) || pipe(go) || pipe(said))
        return 1;
    sr_edge *ed = edge_new();
    for (uint32_t i = 0; i < REPLIES; i++)
        if (replies[i].say != file || on_linux(replies[i].name, "leases"))
            reply(ed, i);
    sr_edge_free(ed);
    return done_testing();
}
