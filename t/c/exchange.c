/* exchange: descriptors and bytes through the queue between workers */
#include "net/exchange.h"

#include "tap.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static sr_exchange x;
static sr_parcel given[SR_PARCELS_MAX + 8], taken[SR_PARCELS_MAX + 8];
static int fds[300], got_fds[300];
static char bytes[SR_PARCEL_BYTES_MAX + 4096], got_bytes[SR_PARCEL_BYTES_MAX];
static int n, n_fds;
static size_t n_bytes;

static sr_exchange_result take(void)
{
    n = n_fds = -1;
    n_bytes = 0;
    return sr_exchange_take(&x, taken, &n, got_fds, &n_fds, got_bytes, &n_bytes);
}

static int open_files(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static bool same_file(int a, int b)
{
    struct stat one, two;
    return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_ino == two.st_ino && one.st_dev == two.st_dev;
}

static void close_got(void)
{
    while (n_fds > 0)
        close(got_fds[--n_fds]);
}

static void one(void)
{
    given[0] = (sr_parcel){.state = 3, .listener = 7, .requests = 42, .deadline = -5, .ready_at = 1LL << 60};
    given[0].peer = (sr_peer){.family = 4, .port = 65535, .addr = {1, 2, 3, 4}};
    is_int(sr_exchange_give(&x, given, 1, fds, 1, NULL, 0), SR_EXCHANGE_OK, "one connection is given");
    is_int(take(), SR_EXCHANGE_OK, "and taken");
    ok(n == 1 && n_fds == 1 && n_bytes == 0, "one parcel, one descriptor, no bytes");
    ok(memcmp(given, taken, sizeof *given) == 0, "the parcel as it was");
    ok(same_file(fds[0], got_fds[0]) && fds[0] != got_fds[0], "another descriptor of the same file");
    ok(fcntl(got_fds[0], F_GETFD) & FD_CLOEXEC, "which an exec closes");
    close_got();
    is_int(take(), SR_EXCHANGE_FULL, "then nothing is there");
}

static void many(void)
{
    for (int i = 0; i < SR_PARCELS_MAX; i++)
        given[i] = (sr_parcel){.requests = (uint32_t)i, .deadline = i * 1000};
    is_int(sr_exchange_give(&x, given, SR_PARCELS_MAX, fds, SR_PARCELS_MAX, NULL, 0), SR_EXCHANGE_OK,
           "64 in one message");
    is_int(take(), SR_EXCHANGE_OK, "are taken");
    ok(n == SR_PARCELS_MAX && n_fds == SR_PARCELS_MAX, "all of them");
    ok(memcmp(given, taken, SR_PARCELS_MAX * sizeof *given) == 0, "as they were");
    bool same = true;
    for (int i = 0; i < n_fds; i++)
        same = same && same_file(fds[i], got_fds[i]);
    ok(same, "each with its own descriptor");
    close_got();
    is_int(sr_exchange_give(&x, given, SR_PARCELS_MAX + 1, fds, SR_PARCELS_MAX + 1, NULL, 0),
           SR_EXCHANGE_FAILED, "65 are too many");
    if (take() == SR_EXCHANGE_OK)
        close_got();
    is_int(sr_exchange_give(&x, given, 1, fds, SR_PARCELS_MAX + 2, NULL, 0), SR_EXCHANGE_FAILED,
           "so are 66 descriptors");
    is_int(errno, EMSGSIZE, "which says so");
}

static void with_bytes(size_t size, uint8_t body)
{
    sr_bytes parts[3] = {
        {bytes, size / 3}, {bytes + size / 3, size / 3}, {bytes + 2 * (size / 3), size - 2 * (size / 3)}};
    given[0] = (sr_parcel){.bytes = (uint32_t)size, .body = body};
    int want = body == SR_PARCEL_FILE ? 2 : 1;
    is_int(sr_exchange_give(&x, given, 1, fds, want, parts, 3), SR_EXCHANGE_OK, "a connection with bytes");
    is_int(take(), SR_EXCHANGE_OK, "is taken");
    ok(n == 1 && n_fds == want && n_bytes == size, "with %zu bytes and %d descriptors", size, want);
    ok(memcmp(bytes, got_bytes, size) == 0, "as they were");
    ok(want == 1 || same_file(fds[1], got_fds[1]), "and its file");
    close_got();
}

static void full(void)
{
    sr_bytes part = {bytes, 1};
    int count = 0, got = 0;
    bool order = true;
    sr_exchange_result r;
    do {
        given[0] = (sr_parcel){.bytes = 1, .requests = (uint32_t)count};
        r = sr_exchange_give(&x, given, 1, fds, 1, &part, 1);
        count += r == SR_EXCHANGE_OK;
    } while (r == SR_EXCHANGE_OK && count < 10000);
    is_int(r, SR_EXCHANGE_FULL, "it becomes full");
    ok(count >= 5 && count < 10000, "after %d messages", count);
    while (take() == SR_EXCHANGE_OK) {
        order = order && taken[0].requests == (uint32_t)got++;
        close_got();
    }
    ok(got == count && order, "all come out, in order");
    given[0] = (sr_parcel){.bytes = SR_PARCEL_BYTES_MAX};
    part.len = SR_PARCEL_BYTES_MAX;
    for (count = 0; sr_exchange_give(&x, given, 1, fds, 1, &part, 1) == SR_EXCHANGE_OK && count < 100;)
        count++;
    ok(count >= 1, "of the largest %d fit", count);
    while (take() == SR_EXCHANGE_OK)
        close_got();
}

/* What a parcel says, and where: another build reads it by this. Who changes it counts SR_PARCEL_FORMAT up. */
static void format(void)
{
    is_int(SR_PARCEL_FORMAT, 1, "the format");
    is_int(offsetof(sr_parcel, format), 0, "is the first that a parcel says, in any format");
    const size_t at[] = {offsetof(sr_parcel, state),      offsetof(sr_parcel, listener),
                         offsetof(sr_parcel, body),       offsetof(sr_parcel, preface),
                         offsetof(sr_parcel, requests),   offsetof(sr_parcel, head),
                         offsetof(sr_parcel, bytes),      offsetof(sr_parcel, body_length),
                         offsetof(sr_parcel, deadline),   offsetof(sr_parcel, ready_at),
                         offsetof(sr_parcel, peer),       offsetof(sr_parcel, peer.family),
                         offsetof(sr_parcel, peer.port),  offsetof(sr_parcel, peer.addr),
                         offsetof(sr_parcel, peer.scope), sizeof(sr_parcel)};
    const size_t want[] = {1, 2, 3, 4, 8, 12, 16, 24, 32, 40, 48, 48, 50, 52, 68, 72};
    ok(memcmp(at, want, sizeof want) == 0, "in this format each field is where it was");
}

static void send_raw(size_t len, int files)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof fds)];
    } control = {0};
    struct iovec iov = {bytes, len};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (files) {
        msg.msg_control = control.room;
        msg.msg_controllen = CMSG_SPACE((size_t)files * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN((size_t)files * sizeof(int));
        memcpy(CMSG_DATA(c), fds, (size_t)files * sizeof(int));
    }
    ok(sendmsg(x.give, &msg, 0) == (ssize_t)len, "a message of %zu bytes and %d descriptors", len, files);
}

static void broken(void)
{
    int before = open_files();
    sr_parcel p = {.format = SR_PARCEL_FORMAT, .bytes = 10};
    memcpy(bytes, &p, sizeof p);
    send_raw(1, 0);
    is_int(take(), SR_EXCHANGE_FAILED, "too short");
    send_raw(sizeof p, 1);
    is_int(take(), SR_EXCHANGE_FAILED, "its bytes are missing");
    send_raw(sizeof p + 11, 1);
    is_int(take(), SR_EXCHANGE_FAILED, "too many bytes");
    send_raw(sizeof p + 10, 0);
    is_int(take(), SR_EXCHANGE_FAILED, "no descriptor");
    send_raw(sizeof p + 10, 2);
    is_int(take(), SR_EXCHANGE_FAILED, "one too many");
    send_raw(sizeof p + 10, 200);
    is_int(take(), SR_EXCHANGE_FAILED, "many too many");
    p.bytes = 0;
    memcpy(bytes, &p, sizeof p);
    send_raw(sizeof p + 1, 1);
    is_int(take(), SR_EXCHANGE_FAILED, "a part of a second parcel");
    p.bytes = UINT32_MAX;
    memcpy(bytes, &p, sizeof p);
    send_raw(sizeof p + 1, 1);
    is_int(take(), SR_EXCHANGE_FAILED, "4 GiB of bytes announced");
    is_int(take(), SR_EXCHANGE_FULL, "none of them is left");
    is_int(open_files(), before, "no descriptor either");
}

static void is_refused(const sr_parcel *p, int n_parcels, size_t len, int n, const char *why)
{
    memcpy(bytes, p, (size_t)n_parcels * sizeof *p);
    send_raw(len, n);
    is_int(take(), SR_EXCHANGE_FAILED, why);
}

/* What a giver of another build may say. */
static void foreign(void)
{
    int before = open_files();
    static sr_parcel many[SR_PARCELS_MAX + 1];
    for (int i = 0; i <= SR_PARCELS_MAX; i++)
        many[i].format = SR_PARCEL_FORMAT;
    is_refused(many, SR_PARCELS_MAX + 1, sizeof many, SR_PARCELS_MAX + 1, "65 parcels");
    got_fds[SR_PARCELS_MAX + 1] = -7;
    is_refused(many, SR_PARCELS_MAX, sizeof many - sizeof *many, SR_PARCELS_MAX + 2, "66 descriptors");
    is_int(got_fds[SR_PARCELS_MAX + 1], -7, "of which 65 are given to who has room for them");
    sr_parcel two[2] = {many[0], {.format = SR_PARCEL_FORMAT, .bytes = 1}};
    is_refused(two, 2, sizeof two, 2, "bytes of a second parcel");
    two[1] = (sr_parcel){.format = SR_PARCEL_FORMAT + 1};
    is_refused(two, 2, sizeof two, 2, "a second parcel of another format");
    for (int by = -1; by <= 254; by += 51) {
        sr_parcel other = {.format = (uint8_t)(SR_PARCEL_FORMAT + by)};
        if (by)
            is_refused(&other, 1, sizeof other, 1, "another format");
    }
    sr_parcel p = {.format = SR_PARCEL_FORMAT, .bytes = 10, .body = SR_PARCEL_FILE + 1};
    is_refused(&p, 1, sizeof p + 10, 1, "a body of no known kind");
    p.body = SR_PARCEL_FILE;
    p.head = 11;
    is_refused(&p, 1, sizeof p + 10, 2, "a head longer than all bytes");
    p.body = SR_PARCEL_DECODED;
    p.head = 4;
    p.body_length = 7;
    is_refused(&p, 1, sizeof p + 10, 1, "a body longer than the rest");
    p.body_length = UINT64_MAX;
    is_refused(&p, 1, sizeof p + 10, 1, "a body longer than memory");
    is_int(open_files(), before, "no descriptor is left");
}

/* The taker has no descriptors left: the message is lost, but nothing else. */
static void no_descriptors(void)
{
    struct rlimit old, few;
    getrlimit(RLIMIT_NOFILE, &old);
    int before = open_files(), top = dup(0);
    close(top);
    given[0] = (sr_parcel){0};
    for (int i = 0; i < 4; i++)
        given[i] = (sr_parcel){0};
    is_int(sr_exchange_give(&x, given, 4, fds, 4, NULL, 0), SR_EXCHANGE_OK, "four for one who has no room");
    few = old;
    few.rlim_cur = (rlim_t)top + 2;
    setrlimit(RLIMIT_NOFILE, &few);
    sr_exchange_result r = take();
    int err = errno;
    setrlimit(RLIMIT_NOFILE, &old);
    is_int(r, SR_EXCHANGE_FAILED, "are not taken by halves");
    is_int(err, EMFILE, "for this reason");
    is_int(n_fds, 0, "and nothing is handed out");
    is_int(open_files(), before, "what did arrive is closed");
    is_int(take(), SR_EXCHANGE_FULL, "the message is gone");
}

/* A message that nobody takes: its descriptors go with the pair. */
static void given_back(void)
{
    int pair[2];
    char byte;
    if (pipe(pair) < 0)
        exit(1);
    is_int(sr_exchange_give(&x, given, 1, &pair[1], 1, NULL, 0), SR_EXCHANGE_OK, "a pipe's end is given");
    close(pair[1]);
    sr_exchange_close(&x);
    is_int(read(pair[0], &byte, 1), 0, "it is closed with the exchange");
    close(pair[0]);
    ok(x.give == -1 && x.take == -1, "which is marked so");
    sr_exchange_close(&x);
}

int main(void)
{
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (int i = 0; i < 300; i++) {
        char name[] = "/tmp/exchange-XXXXXX";
        fds[i] = mkstemp(name);
        unlink(name);
    }
    is_int(sr_exchange_open(&x), 0, "an exchange");
    ok(fcntl(x.give, F_GETFL) & O_NONBLOCK && fcntl(x.take, F_GETFL) & O_NONBLOCK, "which never blocks");
    ok(fcntl(x.give, F_GETFD) & FD_CLOEXEC && fcntl(x.take, F_GETFD) & FD_CLOEXEC, "which an exec closes");
    format();
    one();
    many();
    with_bytes(1, SR_PARCEL_RAW);
    with_bytes(100, SR_PARCEL_FILE);
    with_bytes(65537, SR_PARCEL_DECODED);
    with_bytes(SR_PARCEL_BYTES_MAX, SR_PARCEL_RAW);
    full();
    broken();
    foreign();
    no_descriptors();
    given_back();
    return done_testing();
}
