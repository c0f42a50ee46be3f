/* output: what the socket has not taken yet, in memory and in files */
#include "conn/output.h"
#include "conn/spools.h"
#include "net/tempfile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SIZE = 4 * 1024 * 1024 };

static char *data, *got;
static int pair[2];

static void fill(void)
{
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)(i * 31 + i / 4093);
}

static void sockets(void)
{
    int small = 4096;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
        exit(1);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
}

static void unsockets(void)
{
    close(pair[0]);
    close(pair[1]);
}

/* Flushes while a reader takes `step` bytes at a time; the bytes that arrived, *last is the final answer */
static size_t pump(sr_output *o, size_t step, sr_flush *last, uint64_t *sent)
{
    size_t len = 0;
    for (int idle = 0; idle < 3;) {
        *last = sr_output_flush(o, pair[0], sent);
        ssize_t n = recv(pair[1], got + len, step < SIZE - len ? step : SIZE - len, MSG_DONTWAIT);
        len += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
    }
    return len;
}

static void arrives(sr_output *o, size_t want, size_t step, const char *name)
{
    sr_flush last;
    uint64_t sent = 0;
    size_t len = pump(o, step, &last, &sent);
    ok(len == want && sent == want && memcmp(got, data, len) == 0, "%s: %zu bytes as they were", name, want);
    is_int(last, SR_FLUSH_DONE, "and done");
}

static void memory(void)
{
    sockets();
    sr_output *o = sr_output_new();
    struct iovec iov[4] = {{data, 1000}, {data + 1000, 0}, {data + 1000, 100000}, {data + 101000, 9000}};
    ok(sr_output_keep(o, iov, 4, 0, false, "/proc/nonexistent"), "three pieces are kept");
    ok(o->fd == -1 && sr_output_memory(o) >= 110000, "in memory");
    uint64_t sent = 0;
    is_int(sr_output_flush(o, pair[0], &sent), SR_FLUSH_AGAIN, "a full socket takes a part");
    ok(sent > 0 && sent < 110000, "%d bytes", (int)sent);
    sr_flush last;
    size_t len = pump(o, 777, &last, &sent);
    ok(len == 110000 && sent == 110000 && memcmp(got, data, len) == 0, "the reader gets all");
    is_int(last, SR_FLUSH_DONE, "and done");
    ok(sr_output_keep(o, iov, 4, 1500, false, "/proc/nonexistent"), "behind the first 1,500 bytes");
    len = pump(o, 5000, &last, &sent);
    ok(len == 108500 && memcmp(got, data + 1500, len) == 0, "the rest arrives");
    sr_output_free(o);
    unsockets();
}

static void spool(size_t step, bool twice)
{
    sockets();
    sr_output *o = sr_output_new();
    struct iovec small = {data, 100}, large = {data + 100, 1000000}, more = {data + 1000100, 500000};
    ok(sr_output_keep(o, &small, 1, 0, false, "/tmp") && o->fd == -1, "a little in memory");
    ok(sr_output_keep(o, &large, 1, 0, false, "/tmp") && o->spool, "much goes to a file");
    ok(sr_output_memory(o) < 10000, "memory stays small");
    if (twice)
        ok(sr_output_keep(o, &more, 1, 0, false, "/tmp"), "and more behind it");
    arrives(o, twice ? 1500100 : 1000100, step, "memory, then the file");
    sr_output_free(o);
    unsockets();
}

/* The file grows while a part of it is out already. */
static void growing(void)
{
    sockets();
    sr_output *o = sr_output_new();
    size_t at = 0, len = 0;
    uint64_t sent = 0;
    bool kept = true;
    for (int i = 0; i < 40; i++) {
        struct iovec iov = {data + at, 20000 + (size_t)i};
        kept = kept && sr_output_keep(o, &iov, 1, 0, i == 3, "/tmp");
        at += iov.iov_len;
        sr_output_flush(o, pair[0], &sent);
        ssize_t n = recv(pair[1], got + len, 7000, MSG_DONTWAIT);
        len += n > 0 ? (size_t)n : 0;
    }
    ok(kept && o->spool, "forty pieces, the fourth to disk");
    size_t before = len;
    sr_flush last;
    for (int idle = 0; idle < 3;) {
        last = sr_output_flush(o, pair[0], &sent);
        ssize_t n = recv(pair[1], got + len, 65536, MSG_DONTWAIT);
        len += n > 0 ? (size_t)n : 0;
        idle = n > 0 ? 0 : idle + 1;
    }
    ok(before < at && len == at && last == SR_FLUSH_DONE && memcmp(got, data, len) == 0, "arrive in order");
    sr_output_free(o);
    unsockets();
}

static int file_of(size_t size)
{
    int fd = sr_tempfile_open("/tmp");
    if (fd < 0 || sr_tempfile_write(fd, data, size) < 0)
        exit(1);
    return fd;
}

static void files(void)
{
    sockets();
    sr_output *o = sr_output_new();
    struct iovec head = {data, 300};
    sr_output_keep(o, &head, 1, 0, false, "/tmp");
    sr_output_file(o, file_of(2000000), 300, 1999700);
    arrives(o, 2000000, 100000, "a head and a file from its middle");
    sr_output_free(o);

    o = sr_output_new();
    sr_output_file(o, file_of(5000), 1000, 9000);
    sr_flush last;
    uint64_t sent = 0;
    size_t len = pump(o, 100000, &last, &sent);
    ok(len == 4000 && last == SR_FLUSH_SHORT, "a file that was cut meanwhile");
    sr_output_free(o);

    o = sr_output_new();
    sr_output_file(o, open("/tmp", O_RDONLY), 0, 10);
    is_int(sr_output_flush(o, pair[0], &sent), SR_FLUSH_SHORT, "a folder is no file");
    sr_output_free(o);

    int fd = file_of(1000);
    o = sr_output_new();
    sr_output_file(o, fd, 0, 1000);
    close(pair[1]);
    is_int(sr_output_flush(o, pair[0], &sent), SR_FLUSH_GONE, "the peer has gone");
    sr_output_free(o);
    ok(fcntl(fd, F_GETFD) < 0, "the file is closed with it");
    close(pair[0]);
}

/* What is kept behind a file must neither come before it nor be written into it. */
static void behind_a_file(void)
{
    sockets();
    sr_output *o = sr_output_new();
    int fd = file_of(1000), copy = dup(fd);
    sr_output_file(o, fd, 0, 1000);
    struct iovec more = {data + 1000, 400000};
    bool kept = sr_output_keep(o, &more, 1, 0, false, "/tmp");
    ok(lseek(copy, 0, SEEK_END) == 1000, "the application's file is not written to");
    sr_flush last;
    uint64_t sent = 0;
    size_t len = pump(o, 100000, &last, &sent);
    ok(!kept || (len == 401000 && memcmp(got, data, len) == 0),
       "bytes behind a file are refused or come behind it");
    close(copy);
    sr_output_free(o);
    unsockets();
}

/* No byte of a temporary file beyond `most` until full(0) */
static void full(rlim_t most)
{
    static struct rlimit old;
    struct rlimit few;
    if (!most) {
        setrlimit(RLIMIT_FSIZE, &old);
        return;
    }
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    few = old;
    few.rlim_cur = most;
    setrlimit(RLIMIT_FSIZE, &few);
}

/* While there is no room it goes to memory, behind the file; then into the file again. */
static void room(void)
{
    sockets();
    sr_output *o = sr_output_new();
    struct iovec iov[3] = {{data, 400000}, {data + 400000, 7}, {data + 400007, 99993}};
    ok(sr_output_keep(o, iov, 1, 0, SR_KEEP_BY_SIZE, "/tmp") && o->spool, "a file");
    is_int(sr_spools_bytes(), 400000, "is counted");
    ok(sr_output_keep(o, iov + 1, 2, 0, SR_KEEP_OFF_DISK, "/tmp"), "no room");
    is_int(sr_spools_bytes(), 400000, "no more of it");
    is_int(sr_output_pending(o), 500000, "all is pending");
    iov[0] = (struct iovec){data + 500000, 1000};
    ok(sr_output_keep(o, iov, 1, 0, SR_KEEP_OFF_DISK, "/tmp") && sr_buffer_len(&o->tail) == 101000,
       "still none");
    iov[0] = (struct iovec){data + 501000, 9000};
    ok(sr_output_keep(o, iov, 1, 0, SR_KEEP_BY_SIZE, "/tmp") && !sr_buffer_len(&o->tail), "and room again");
    is_int(sr_spools_bytes(), 510000, "all is in the file");
    iov[0] = (struct iovec){data + 510000, 1000};
    ok(sr_output_keep(o, iov, 1, 0, SR_KEEP_OFF_DISK, "/tmp"), "again none");
    arrives(o, 511000, 30000, "in their order");
    ok(!o->spool && o->fd < 0, "the file is closed when it is sent");
    sr_output_free(o);
    is_int(sr_spools_bytes(), 0, "nothing counts any more");
    o = sr_output_new();
    sr_output_file(o, file_of(1000), 0, 1000);
    iov[0] = (struct iovec){data, 1};
    ok(!sr_output_keep(o, iov, 1, 0, SR_KEEP_OFF_DISK, "/tmp"),
       "behind a file of the application there is no place");
    sr_output_free(o);
    unsockets();
}

static void no_disk(void)
{
    struct iovec iov = {data, 1000000}, huge[17], two[2] = {{data + 250000, 100000}, {data + 350000, 50000}};
    sockets();
    sr_output *o = sr_output_new();
    ok(sr_output_keep(o, &iov, 1, 1000, SR_KEEP_BY_SIZE, "/proc/nonexistent"), "no folder: kept in memory");
    ok(o->fd < 0 && sr_buffer_len(&o->mem) == 999000, "all of it");
    sr_output_free(o);
    o = sr_output_new();
    ok(!sr_output_keep(o, &iov, 1, 0, SR_KEEP_ON_DISK, "/proc/nonexistent"),
       "with too much in memory: refused");
    is_int(errno, ENOENT, "with its reason");
    for (int i = 0; i < 17; i++)
        huge[i] = (struct iovec){data, SIZE};
    ok(!sr_output_keep(o, huge, 17, 0, SR_KEEP_BY_SIZE, "/proc/nonexistent"), "too much in itself: refused");
    sr_output_free(o);
    o = sr_output_new();
    full(300000);
    ok(sr_output_keep(o, &iov, 1, 0, SR_KEEP_BY_SIZE, "/tmp"), "a disk that is full in the middle");
    full(0);
    arrives(o, 1000000, 50000, "in memory");
    sr_output_free(o);
    is_int(sr_spools_bytes(), 0, "nothing counts any more");
    o = sr_output_new();
    uint64_t sent = 0;
    iov.iov_len = 250000;
    full(300000);
    ok(sr_output_keep(o, &iov, 1, 0, SR_KEEP_ON_DISK, "/tmp"), "a part that fits");
    sr_output_flush(o, pair[0], &sent);
    ssize_t early = recv(pair[1], got, SIZE, MSG_DONTWAIT);
    ok(sr_output_keep(o, two, 2, 0, SR_KEEP_BY_SIZE, "/tmp"), "and one that does not");
    full(0);
    ok(sr_buffer_len(&o->tail) == 150000, "in memory, behind the file");
    memmove(data, data + early, (size_t)(SIZE - early));
    arrives(o, 400000 - (size_t)early, 50000, "both in their order");
    sr_output_free(o);
    unsockets();
    sr_output_free(NULL);
    fill();
}

/* One fast reader of a large file must not hold the loop: a turn has an end. */
static void turns(void)
{
    int large = 8 << 20;
    sockets();
    setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &large, sizeof large);
    sr_output *o = sr_output_new();
    uint64_t sent = 0;
    sr_output_file(o, file_of(SIZE), 0, SIZE);
    is_int(sr_output_flush(o, pair[0], &sent), SR_FLUSH_AGAIN, "a large file takes several turns");
    ok(sent <= 1024 * 1024, "of a megabyte at most");
    sr_output_free(o);
    unsockets();
}

/* sendfile has no MSG_NOSIGNAL, and an application may have set SIGPIPE back to what kills. */
static void quietly(void (*action)(int), const char *name)
{
    sigset_t pending;
    sigemptyset(&pending);
    signal(SIGPIPE, action);
    sockets();
    sr_output *o = sr_output_new();
    uint64_t sent = 0;
    sr_output_file(o, file_of(5000), 0, 5000);
    close(pair[1]);
    pair[1] = -1;
    ok(sr_output_flush(o, pair[0], &sent) == SR_FLUSH_GONE && errno == EPIPE, "%s: the reader is gone", name);
    sigpending(&pending);
    ok(!sigismember(&pending, SIGPIPE), "and no signal is left behind");
    sr_output_free(o);
    unsockets();
}

/* Several ranges of a file, each behind a text, and one at the end. */
static void parts(size_t step)
{
    static const char head[] = "head", texts[] = "<one><two><end>";
    int fd = sr_tempfile_open("/tmp");
    sr_output *o = sr_output_new();
    sr_parts *p = sr_parts_new(3);
    struct iovec iov = {(char *)head, 4};
    char *want = malloc(SIZE + 100), *to = want;
    sr_flush last;
    uint64_t sent = 0;
    sockets();
    ok(sr_tempfile_write(fd, data, SIZE) == 0 && sr_output_keep(o, &iov, 1, 0, SR_KEEP_IN_MEMORY, "/tmp") &&
           sr_buffer_add(&p->text, texts, 15),
       "a head, and parts");
    for (unsigned i = 0; i < 3; i++)
        p->at[i].text = 5;
    p->at[0].offset = SIZE / 2;
    p->at[0].length = SIZE / 2;
    p->at[1].offset = 7;
    p->at[1].length = 11;
    sr_output_file(o, fd, 0, 0);
    o->parts = p;
    to = (char *)memcpy(to, "head<one>", 9) + 9;
    to = (char *)memcpy(to, data + SIZE / 2, SIZE / 2) + SIZE / 2;
    to = (char *)memcpy(to, "<two>", 5) + 5;
    to = (char *)memcpy(to, data + 7, 11) + 11;
    to = (char *)memcpy(to, "<end>", 5) + 5;
    size_t len = pump(o, step, &last, &sent);
    ok(len == (size_t)(to - want) && sent == len && memcmp(got, want, len) == 0,
       "arrive as one, %zu at a time", step);
    is_int(last, SR_FLUSH_DONE, "and done");
    sr_output_free(o);
    free(want);
    unsockets();
}

int main(void)
{
    data = malloc(SIZE);
    got = malloc(SIZE);
    fill();
    quietly(SIG_DFL, "SIGPIPE kills");
    quietly(SIG_IGN, "SIGPIPE is ignored");
    memory();
    spool(100000, false);
    spool(3000, true);
    growing();
    files();
    behind_a_file();
    no_disk();
    room();
    turns();
    parts(SIZE);
    parts(2000);
    free(data);
    free(got);
    return done_testing();
}
