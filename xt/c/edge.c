/*
 * edge: an edge with real sockets, an honest worker, and beside it workers that do what they must not. The
 * clients of the honest one notice nothing; the edge goes on with the descriptors and the memory that it had;
 * the supervisor is told.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edge/edge.h"
#include "share/item.h"
#include "share/memory.h"

#include "worker/worker.h"

#include "edge_site.h"
#include "tap.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 8, HONEST = 0, HOSTILE = 1, REQUESTS = 8 };

static int has_it[2];
static pid_t edge_pid, honest_pid;

/* --- processes --- */

static pid_t child(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGPIPE, SIG_IGN);
    }
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static _Noreturn void run_edge(void)
{
    sr_setup s = site_settings();
    sr_edge *edge;
    close(lifeline[1]);
    if (sr_edge_new(&edge, &s))
        _exit(9);
    sr_edge_run(edge);
    sr_edge_free(edge);
    _exit(0);
}

static _Noreturn void run_honest(void)
{
    sr_worker w;
    worker_open(&w, HONEST);
    for (;;) {
        if (sr_worker_next(&w) != SR_WORKER_REQUEST)
            continue;
        sr_reply_head head = {.status = 200, .length = 2, .app_length = SR_REPLY_LENGTH_UNKNOWN};
        struct iovec body = {"ok", 2};
        sr_worker_reply(&w, &head, SR_BYTES("X-Honest: yes\r\n"), &body, 1, SR_REPLY_LAST);
        sr_worker_done(&w);
    }
}

/* --- what a worker must not do. It has a request, where the table says so --- */

static sr_worker bad;

static void say(uint16_t kind, uint16_t flags, const void *payload, size_t len)
{
    sr_record *r;
    while (!(r = sr_ring_reserve(bad.from->queue.ring, len)))
        sr_worker_flush(&bad);
    *r = (sr_record){.kind = kind, .flags = flags, .number = bad.number, .slot = bad.index};
    if (len)
        memcpy(r + 1, payload, len);
    sr_ring_commit(bad.from->queue.ring, r, len);
    sr_worker_flush(&bad);
}

static void say_head(uint16_t kind, uint16_t status, uint64_t length, const char *fields)
{
    char payload[1000];
    sr_reply_head h = {.status = status,
                       .length = length,
                       .app_length = SR_REPLY_LENGTH_UNKNOWN,
                       .fields = (uint32_t)strlen(fields)};
    memcpy(payload, &h, sizeof h);
    memcpy(payload + sizeof h, fields, strlen(fields));
    say(kind, 0, payload, sizeof h + strlen(fields));
}

static void moment(void)
{
    usleep(10000);
}

static void ring_garbage(void)
{
    atomic_fetch_add(&bad.from->queue.ring->put, 12345);
    sr_worker_flush(&bad);
}

static void ring_pads(void)
{
    sr_ring *r = bad.from->queue.ring;
    sr_record pad = {.bytes = SR_RING_BYTES};
    memcpy(r->data, &pad, sizeof pad);
    for (int i = 0; i < 3000000; i++)
        atomic_store(&r->put, atomic_load(&r->taken) + SR_RING_BYTES);
    sr_worker_flush(&bad);
}

static void end_without_head(void)
{
    say(SR_REPLY_END, 0, "", 0);
}
static void data_without_head(void)
{
    say(SR_REPLY_DATA, 0, "data", 4);
}
static void unknown_kind(void)
{
    say(99, 0, "", 0);
}
static void status_42(void)
{
    say_head(SR_REPLY_HEAD, 42, 0, "");
}
static void split(void)
{
    say_head(SR_REPLY_HEAD, 200, 0, "X: a\nSet-Cookie: b\r\n");
}
static void no_colon(void)
{
    say_head(SR_REPLY_HEAD, 200, 0, "nothing\r\n");
}

static void head_twice(void)
{
    say_head(SR_REPLY_HEAD, 200, 5, "");
    say_head(SR_REPLY_HEAD, 200, 5, "");
}

static void short_head(void)
{
    say(SR_REPLY_HEAD, 0, "abc", 3);
}

static void never_issued(void)
{
    bad.number += 1000000;
    say(SR_REPLY_CUT, 0, "", 0);
}

static void no_slot(void)
{
    bad.index = UINT32_MAX;
    say(SR_REPLY_CUT, 0, "", 0);
}

/* A part of an item. */
static void publish(uint64_t number, uint16_t flags, const char *at, size_t len)
{
    uint64_t own = bad.number;
    uint32_t slot = bad.index;
    bad.number = number;
    bad.index = SR_REPLY_NO_SLOT;
    say(SR_REPLY_PUBLISH, flags, at, len);
    bad.number = own;
    bad.index = slot;
}

static void publish_rubbish(void)
{
    publish(0, 0, "rubbish", 7);
}

static void publish_for_request(void)
{
    publish(bad.number, 0, "rubbish", 7);
}

static void publish_without_end(void)
{
    static char piece[8192];
    for (size_t sum = 0; sum <= SR_ITEM_PACKED_MAX; sum += sizeof piece)
        publish(0, SR_REPLY_MORE, piece, sizeof piece);
}

static void publish_unknown_flag(void)
{
    publish(0, 1 << 15, "rubbish", 7);
}

static void file_of(int fd, uint64_t length)
{
    sr_message note = {.kind = SR_MESSAGE_FILE, .number = bad.number, .slot = bad.index};
    sr_reply_file f = {.length = length};
    say_head(SR_REPLY_HEAD, 200, length, "");
    sr_door_send(bad.from->line, &note, &fd, 1, false);
    say(SR_REPLY_FILE, 0, &f, sizeof f);
    say(SR_REPLY_END, 0, "", 0);
}

static void file_directory(void)
{
    file_of(open("/", O_RDONLY), 100);
}

static void file_pipe(void)
{
    int p[2];
    if (pipe(p) == 0)
        file_of(p[0], 100);
}

static void file_short(void)
{
    int fd = memfd_create("short", 0);
    if (ftruncate(fd, 1000) == 0)
        file_of(fd, 1 << 20);
    for (int i = 0; i < 20; i++) {
        if (ftruncate(fd, i % 2 * 1000) != 0)
            break;
        moment();
    }
}

static void file_sparse(void)
{
    int fd = memfd_create("huge", 0);
    if (ftruncate(fd, (off_t)1 << 40) == 0)
        file_of(fd, (uint64_t)1 << 40);
}

static void file_missing(void)
{
    sr_reply_file f = {.length = 10};
    say_head(SR_REPLY_HEAD, 200, 10, "");
    say(SR_REPLY_FILE, 0, &f, sizeof f);
}

static void interims(void)
{
    for (int i = 0; i < 20000; i++)
        say_head(SR_REPLY_INTERIM, 103, 0,
                 "Link: </a>; rel=preload; as=style; a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
}

static void fields_without_end(void)
{
    static char line[8000];
    memset(line, 'a', sizeof line);
    memcpy(line, "X: ", 3);
    memcpy(line + sizeof line - 2, "\r\n", 2);
    for (int i = 0; i < 3000; i++)
        say(SR_REPLY_FIELDS, 0, line, sizeof line);
}

static void data_without_end(void)
{
    static char piece[8000];
    say_head(SR_REPLY_HEAD, 200, SR_REPLY_LENGTH_UNKNOWN, "");
    for (int i = 0; i < 3000; i++)
        say(SR_REPLY_DATA, 0, piece, sizeof piece);
}

static void note(uint32_t kind, int times)
{
    sr_message m = {.kind = kind, .number = bad.number, .slot = bad.index};
    for (int i = 0; i < times; i++)
        sr_door_send(bad.edges[0].line, &m, NULL, 0, false);
}

static void asks_and_reads_nothing(void)
{
    note(SR_MESSAGE_ASK, 3000);
    moment();
    note(SR_MESSAGE_ASK, 3000);
    moment();
    note(SR_MESSAGE_ASK, 3000);
}
static void takes_and_reads_nothing(void)
{
    note(SR_MESSAGE_TAKE, 3000);
    moment();
    note(SR_MESSAGE_TAKE, 3000);
    moment();
    note(SR_MESSAGE_TAKE, 3000);
}
static void note_unknown(void)
{
    note(77, 1);
}

static void note_small(void)
{
    if (send(bad.edges[0].line, "x", 1, MSG_DONTWAIT) < 0)
        _exit(7);
}

static void line_shut(void)
{
    shutdown(bad.edges[0].line, SHUT_RDWR);
}

static int visit(void)
{
    int line = -1;
    for (int tries = 0; sr_door_enter(sr_door_name(lobby), &line) == EAGAIN && tries < 1000; tries++)
        moment();
    return line;
}

static void lobby_rubbish(void)
{
    static const char rubbish[50] = "x";
    for (size_t i = 0; i < 200; i++) {
        int line = visit();
        if (i % 3)
            send(line, rubbish, i % sizeof rubbish, MSG_DONTWAIT);
        if (i % 2)
            close(line); /* the others stay, and say nothing more */
    }
}

static void many_descriptors(void)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(100 * sizeof(int))];
    } c;
    sr_message m = {.layout = SR_QUEUE_LAYOUT, .kind = SR_MESSAGE_FILE};
    struct iovec iov = {&m, sizeof m};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.space, .msg_controllen = sizeof c.space};
    int fds[100];
    for (int i = 0; i < 100; i++)
        fds[i] = 0;
    struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
    *h =
        (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(h), fds, sizeof fds);
    for (int i = 0; i < 50; i++) {
        sendmsg(bad.edges[0].line, &msg, MSG_DONTWAIT);
        int line = visit();
        sendmsg(line, &msg, MSG_DONTWAIT);
        close(line);
    }
}

/* Closing it would wait for a peer that never reads */
static void lingering_socket(void)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof here;
    static char bytes[1 << 20];
    int l = socket(AF_INET, SOCK_STREAM, 0), s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(l, (struct sockaddr *)&here, len) || listen(l, 1) ||
        getsockname(l, (struct sockaddr *)&here, &len))
        _exit(7);
    connect(s, (struct sockaddr *)&here, len);
    moment();
    while (send(s, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    setsockopt(s, SOL_SOCKET, SO_LINGER, &(struct linger){1, 60}, sizeof(struct linger));
    sr_message m = {.kind = SR_MESSAGE_FILE};
    sr_door_send(bad.edges[0].line, &m, &s, 1, false);
    close(s);
    sr_door_send(bad.edges[0].line, &m, NULL, 0, false);
    pause();
}

static void hello(uint32_t row, int times)
{
    for (int i = 0; i < times; i++) {
        int line = visit();
        sr_message m = {.kind = SR_MESSAGE_HELLO,
                        .row = row,
                        .pid = honest_pid,
                        .number = atomic_load(&bad.sleepers->key)};
        sr_door_send(line, &m, NULL, 0, false);
        close(line);
    }
}

static void hello_for_another(void)
{
    hello(HONEST, 50);
}
static void hello_again_and_again(void)
{
    hello(HOSTILE, 50);
}
static void hello_for_none(void)
{
    hello(UINT32_MAX, 50);
}

static sr_replies *replies(void)
{
    return bad.edges[0].queue.replies;
}

static void claims_of(uint32_t owner, bool garbage)
{
    const sr_requests *r = bad.edges[0].queue.requests;
    for (int round = 0; round < 5; round++, moment())
        for (uint32_t slot = 0; slot < r->slots; slot++) {
            const sr_slot *s =
                (const sr_slot *)(const void *)((const char *)r + r->slots_at + (size_t)slot * SR_SLOT_BYTES);
            atomic_store(&replies()->claims[slot].word, garbage ? UINT64_MAX / 7 : s->number << 16 | owner);
        }
}

static void claims_garbage(void)
{
    claims_of(0, true);
}
static void claims_mine(void)
{
    claims_of(HOSTILE + 1, false);
}
static void claims_honest(void)
{
    claims_of(HONEST + 1, false);
}
static void claims_nobody(void)
{
    claims_of(SR_OWNER_NOBODY, false);
}
static void claims_edge(void)
{
    claims_of(SR_OWNER_EDGE, false);
}

static void hints(void)
{
    for (int i = 0; i < 10; i++, moment()) {
        atomic_store(&replies()->head, UINT64_C(1) << 60);
        atomic_store(&replies()->asleep, 0);
        for (int w = 0; w < 128; w++)
            atomic_store(&replies()->replied[w], 0);
    }
}

static void beds(void)
{
    sr_sleepers *s = bad.sleepers;
    for (int i = 0; i < 10; i++, moment()) {
        atomic_store(&s->rows, UINT32_MAX);
        atomic_store(&s->words, i % 2 ? 0 : UINT32_MAX);
        memset((void *)s->sleeping, i % 3 ? 0 : 255, sizeof s->sleeping);
        memset((void *)s->searching, 255, sizeof s->searching);
    }
}

static void others_requests(void)
{
    const sr_requests *r = bad.edges[0].queue.requests;
    bad.from = &bad.edges[0];
    for (int round = 0; round < 100; round++) {
        for (uint32_t slot = 0; slot < 4; slot++) {
            const sr_slot *s =
                (const sr_slot *)(const void *)((const char *)r + r->slots_at + (size_t)slot * SR_SLOT_BYTES);
            bad.number = s->number;
            bad.index = slot;
            if (bad.number)
                say(SR_REPLY_CUT, 0, "", 0);
        }
        usleep(1000);
    }
}

/* It has one request, and says that it has begun with the next one too */
static void a_second_one(void)
{
    uint32_t index;
    say_head(SR_REPLY_HEAD, 200, SR_REPLY_LENGTH_UNKNOWN, "");
    while (!sr_consumer_take(&bad.edges[0].queue, &index))
        ;
    atomic_store(&bad.edges[0].queue.ring->began, bad.edges[0].queue.number);
}

static void shrink(void)
{
    for (int fd = 3; fd < 64; fd++)
        if (fd != listener && ftruncate(fd, 0) == 0)
            continue;
}

static void forked_child(void)
{
    pid_t pid = fork();
    if (!pid) {
        for (int i = 0; i < 50; i++, moment()) {
            note(SR_MESSAGE_TAKE, 1);
            hello(HONEST, 1);
            atomic_fetch_add(&bad.edges[0].queue.ring->put, 9);
        }
        _exit(0);
    }
    kill(getpid(), SIGKILL);
}

static void half_a_record(void)
{
    sr_ring_reserve(bad.from->queue.ring, 100);
    kill(getpid(), SIGKILL);
}

static void stopped(void)
{
    raise(SIGSTOP);
}

static const struct crime {
    const char *name;
    void (*act)(void);
    bool request; /* with one */
    bool told;    /* to the supervisor */
} crimes[] = {
    {"a ring whose end is nowhere", ring_garbage, true, true},
    {"a ring of nothing but padding", ring_pads, true, true},
    {"END without HEAD", end_without_head, true, true},
    {"DATA without HEAD", data_without_head, true, true},
    {"a record of no kind", unknown_kind, true, true},
    {"status 42", status_42, true, true},
    {"a field with a line feed in it", split, true, true},
    {"a field without a colon", no_colon, true, true},
    {"HEAD twice", head_twice, true, true},
    {"half a HEAD", short_head, true, true},
    {"a number that there never was", never_issued, true, true},
    {"a slot that there is not", no_slot, true, true},
    {"an item that is none", publish_rubbish, true, true},
    {"an item about a request", publish_for_request, true, true},
    {"an item without an end", publish_without_end, true, true},
    {"an item with a flag that is unknown", publish_unknown_flag, true, true},
    {"a directory as a file", file_directory, true, true},
    {"a pipe as a file", file_pipe, true, true},
    {"a file that is shorter than it says", file_short, true, false},
    {"a sparse file of a TiB", file_sparse, true, false},
    {"a file that does not come", file_missing, true, true},
    {"interim responses without an end", interims, true, false},
    {"fields without an end", fields_without_end, true, true},
    {"a body without an end", data_without_end, true, false},
    {"asks for files and reads nothing", asks_and_reads_nothing, true, true},
    {"takes the socket and reads nothing", takes_and_reads_nothing, true, true},
    {"a note of no kind", note_unknown, false, true},
    {"a note of a byte", note_small, false, true},
    {"shuts its line", line_shut, false, false},
    {"rubbish in the lobby", lobby_rubbish, false, false},
    {"a hundred descriptors in a note", many_descriptors, false, false},
    {"a socket that lingers as a file", lingering_socket, false, false},
    {"says hello for another", hello_for_another, false, true},
    {"says hello again and again", hello_again_and_again, false, false},
    {"says hello for a row that there is not", hello_for_none, false, false},
    {"garbage in all claims", claims_garbage, false, false},
    {"claims everything", claims_mine, false, false},
    {"claims everything for another", claims_honest, false, false},
    {"claims everything for nobody", claims_nobody, false, false},
    {"claims everything for the edge", claims_edge, false, false},
    {"spoils all hints", hints, false, false},
    {"spoils who sleeps", beds, false, false},
    {"speaks of others' requests", others_requests, false, false},
    {"keeps a second request", a_second_one, true, false},
    {"makes all memory shorter", shrink, false, false},
    {"is killed, and its child goes on", forked_child, true, false},
    {"is killed within a record", half_a_record, true, false},
    {"is stopped with a request", stopped, true, false},
};

static _Noreturn void run_hostile(const struct crime *crime)
{
    worker_open(&bad, HOSTILE);
    while (crime->request && sr_worker_next(&bad) != SR_WORKER_REQUEST)
        ;
    if (!crime->request) /* it takes none: those that come are the honest one's */
        sr_sleepers_forget(bad.sleepers, HOSTILE);
    if (write(has_it[1], "x", 1) != 1)
        _exit(6);
    crime->act();
    for (;;)
        pause();
}

/* --- clients --- */

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return -1;
    return fd;
}

static void request(int fd, const char *path)
{
    char text[200];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
        return;
}

static bool answered(int fd)
{
    char text[1000] = "";
    size_t len = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (len < sizeof text - 1 && !strstr(text, "\r\n\r\nok") && poll(&p, 1, PATIENCE_MS) > 0) {
        ssize_t n = recv(fd, text + len, sizeof text - 1 - len, 0);
        if (n <= 0)
            break;
        text[len += (size_t)n] = '\0';
    }
    bool right = strncmp(text, "HTTP/1.1 200 OK\r\nX-Honest: yes\r\n", 32) == 0 && strstr(text, "\r\n\r\nok");
    if (!right)
        tap_bytes("got", text, len);
    return right;
}

static int count_descriptors(void)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)edge_pid);
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

static long clock_ticks(void)
{
    char path[64], text[1000] = "";
    unsigned long user = 0, system = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)edge_pid);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    const char *at = strrchr(text, ')');
    if (!at || sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return -1;
    return (long)(user + system);
}

static bool told(pid_t pid)
{
    char text[4096], want[32];
    struct pollfd p = {.fd = report[0], .events = POLLIN};
    snprintf(want, sizeof want, "%d broken ", (int)pid);
    while (poll(&p, 1, 5000) > 0) {
        ssize_t n = read(report[0], text, sizeof text - 1);
        if (n <= 0)
            return false;
        text[n] = '\0';
        if (strstr(text, want))
            return true;
    }
    return false;
}

static bool settles(int descriptors)
{
    for (int i = 0; i < 500; i++, moment())
        if (count_descriptors() <= descriptors)
            return true;
    printf("# %d descriptors, %d before\n", count_descriptors(), descriptors);
    return false;
}

/*
 * qemu-user takes descriptors that the control buffer of a program has no room for, and leaves them open. On
 * a machine of the other byte order it also adds 2^56 to an eventfd that came from another process, where the
 * program has said 1.
 */
static bool keeps_what_does_not_fit(void)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(16 * sizeof(int))];
    } many = {.align = {.cmsg_len = CMSG_LEN(16 * sizeof(int)),
                        .cmsg_level = SOL_SOCKET,
                        .cmsg_type = SCM_RIGHTS}},
      one;
    char byte = 0;
    struct iovec iov = {&byte, 1};
    struct msghdr out = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = many.space,
                         .msg_controllen = sizeof many},
                  in = {.msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = one.space,
                        .msg_controllen = CMSG_SPACE(sizeof(int))};
    int ends[2], lowest = dup(0), next, room = (int)CMSG_SPACE(sizeof(int)) - (int)CMSG_LEN(0);
    close(lowest);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0)
        return false;
    for (int i = 0; i < 16; i++)
        ((int *)(void *)CMSG_DATA(CMSG_FIRSTHDR(&out)))[i] = 0;
    if (sendmsg(ends[0], &out, 0) == 1)
        (void)!recvmsg(ends[1], &in, 0);
    next = dup(0);
    bool kept = next > lowest + 2 + room / (int)sizeof(int);
    for (int fd = lowest; fd <= lowest + 20; fd++)
        close(fd);
    return kept;
}

static void commit(const struct crime *crime, int kept)
{
    char byte;
    int victim = -1, right = 0, before = count_descriptors();
    if (crime->request) {
        kill(honest_pid, SIGSTOP);
        victim = dial();
        request(victim, "/victim");
    }
    pid_t pid = child();
    if (!pid)
        run_hostile(crime);
    ssize_t n = read(has_it[0], &byte, 1);
    kill(honest_pid, SIGCONT);
    for (int i = 0; i < REQUESTS; i++) {
        int client = dial();
        request(client, "/");
        right += answered(client);
        close(client);
        usleep(2000);
    }
    request(kept, "/");
    right += answered(kept);
    bool supervisor = !crime->told || told(pid);
    end(pid);
    if (victim >= 0)
        close(victim);
    request(kept, "/");
    right += answered(kept);
    long ticks = clock_ticks();
    bool descriptors = settles(before);
    bool ok_all = ok(n == 1 && right == REQUESTS + 2 && supervisor && descriptors && kill(edge_pid, 0) == 0,
                     "%s: others are served%s", crime->name, crime->told ? ", the supervisor is told" : "");
    if (!ok_all)
        printf("# %d of %d right, told %d, descriptors %d, has it %d\n", right, REQUESTS + 2, supervisor,
               descriptors, (int)n);
    usleep(50000);
    ticks = clock_ticks() - ticks;
    if (ticks > 20)
        ok(false, "%s: the edge spins: %ld ticks", crime->name, ticks);
}

int main(void)
{
    int status;
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (!site_open(ROWS) || pipe(has_it))
        return 1;
    if (!(edge_pid = child()))
        run_edge();
    if (!(honest_pid = child()))
        run_honest();
    int kept = dial();
    request(kept, "/");
    ok(answered(kept), "the honest worker serves");
    bool emulated = keeps_what_does_not_fit();
    for (size_t i = 0; i < sizeof crimes / sizeof *crimes; i++)
        if (crimes[i].act == many_descriptors && emulated)
            ok(true, "skipped: %s: this is an emulator that leaves them open", crimes[i].name);
        else if (crimes[i].act == fields_without_end && emulated && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
            ok(true, "skipped: %s: this is an emulator in which a bell is full after 255 times",
               crimes[i].name);
        else if (crimes[i].act != shrink || on_linux(crimes[i].name, "seals"))
            commit(&crimes[i], kept);
    close(kept);
    kill(edge_pid, SR_EDGE_STOP);
    waitpid(edge_pid, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the edge ends as it should, with nothing lost");
    end(honest_pid);
    return done_testing();
}
