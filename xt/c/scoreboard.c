/* scoreboard: rows that outlive their workers, and the request that others read while it changes */
#include "share/scoreboard.h"
#include "base/clock.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void layout(void)
{
    is_int(_Alignof(sr_row), 128, "a row is aligned to two cache lines");
    is_int(sizeof(sr_row) % 128, 0, "and fills them");
    ok(offsetof(sr_row, sequence) / 128 > offsetof(sr_row, since) / 128,
       "its request is in other cache lines than its state");
    ok(offsetof(sr_board, layout) == 0, "a scoreboard begins with its layout");
    is_int(SR_SCOREBOARD_LAYOUT & 0xffffff, sizeof(sr_row) + sizeof(sr_paths) + sizeof(sr_exceptions),
           "which has sizes in it");
    ok(offsetof(sr_row, counters) / 64 > offsetof(sr_row, mark) / 64, "nor are its counters");
}

static const sr_peer peer = {.family = 4, .port = 5555, .addr = {127, 0, 0, 1}};

static bool line_is(const sr_row *row, const char *want)
{
    sr_row_request r;
    return sr_row_read(row, &r) && r.line_len == strlen(want) && memcmp(r.line, want, r.line_len) == 0;
}

static bool mark_is(const sr_row *row, const char *want)
{
    sr_row_request r;
    bool good = sr_row_read(row, &r) && r.mark_len == strlen(want) && memcmp(r.mark, want, r.mark_len) == 0;
    if (!good)
        tap_bytes("mark", (const char *)r.mark, r.mark_len);
    return good;
}

static bool text_is(const sr_row *row, size_t cap, const char *want)
{
    char out[1000];
    sr_row_request r;
    memset(out, '#', sizeof out);
    size_t len = sr_row_read(row, &r) ? sr_row_text(&r, out, cap) : 0;
    return len == strlen(want) && memcmp(out, want, len) == 0 && out[len] == '#';
}

static uint64_t number = 1000;

static void set(sr_row *row, const char *line)
{
    char request[100]; /* the target, and more behind it */
    int len = snprintf(request, sizeof request, "%s HTTP/1.1\r\n", line) - 11;
    const char *target = strchr(request, ' ') + 1;
    sr_row_end(row);
    sr_row_number(row, 0x5b1f0c6e9d3a4e77, ++number);
    sr_row_begin(row, sr_bytes_of(request, (size_t)(target - request) - 1),
                 sr_bytes_of(target, (size_t)(request + len - target)), &peer, 7);
}

static bool id_is(const sr_row *row, const char *want)
{
    sr_row_request r;
    char made[SR_REQUEST_ID_MADE];
    if (!sr_row_read(row, &r))
        return false;
    sr_bytes id = sr_row_id(&r, made);
    return id.len == strlen(want) && memcmp(id.at, want, id.len) == 0;
}

static void ids(sr_row *row)
{
    char many[SR_REQUEST_ID_MAX + 2];
    sr_row_request r;
    memset(many, 'x', sizeof many);
    many[SR_REQUEST_ID_MAX + 1] = '\0';
    number = 1000;
    set(row, "GET /");
    ok(id_is(row, "5b1f0c6e9d3a4e7700000000000003e9"), "the id that the server makes");
    sr_row_named(row, SR_BYTES("from-the-proxy"));
    ok(id_is(row, "from-the-proxy"), "that of a trusted peer");
    sr_row_named(row, sr_bytes_of(many, SR_REQUEST_ID_MAX));
    ok(sr_row_read(row, &r) && r.named_len == SR_REQUEST_ID_MAX, "of 200 bytes");
    sr_row_named(row, sr_bytes_of(many, SR_REQUEST_ID_MAX + 1));
    ok(id_is(row, "5b1f0c6e9d3a4e7700000000000003e9"), "but not of more");
    sr_row_named(row, SR_BYTES("a b"));
    ok(id_is(row, "5b1f0c6e9d3a4e7700000000000003e9"), "nor what is none");
    sr_row_named(row, SR_BYTES("abc"));
    set(row, "GET /next");
    ok(id_is(row, "5b1f0c6e9d3a4e7700000000000003ea"), "and none of the next request");
    atomic_store(&row->named_len, 5);
    atomic_store(&row->named[0], 0x1b1b1b1b1b);
    atomic_store(&row->named_number, 1002);
    ok(id_is(row, "5b1f0c6e9d3a4e7700000000000003ea"), "what a worker has spoiled is not shown");
    atomic_store(&row->named_len, UINT32_MAX);
    ok(!sr_row_read(row, &r), "nor read beyond its end");
    sr_row_named(row, SR_BYTES(""));
    set(row, "GET /");
    ok(id_is(row, "5b1f0c6e9d3a4e7700000000000003eb"), "the next request has its own again");
}

static void mark(sr_row *row, const char *text)
{
    char *copy = strdup(text); /* exactly so long: the sanitizer sees who reads on */
    sr_row_mark(row, copy, strlen(copy));
    free(copy);
}

static void lines(sr_row *row)
{
    ok(line_is(row, ""), "no line at first");
    bool all = true;
    for (size_t len = 1; len <= SR_LINE_MAX + 50; len++) {
        size_t method = len % 3 ? (len - 1) / (len % 7 + 1) : len - 1; /* short, long, all of the line */
        char *line = malloc(len + 7), *target = malloc(len - method);  /* exactly so long: see `mark` */
        for (size_t i = 0; i < len + 7; i++)
            line[i] = (char)('a' + (i * 7 + len) % 26);
        line[method] = ' ';
        memcpy(target, line + method + 1, len - method - 1);
        char after = line[len < SR_LINE_MAX ? len : SR_LINE_MAX];
        for (int apart = 0; apart < 2; apart++) {
            line[len < SR_LINE_MAX ? len : SR_LINE_MAX] = after;
            sr_row_begin(row, sr_bytes_of(line, method),
                         sr_bytes_of(apart ? target : line + method + 1, len - method - 1), &peer, 1);
            line[len < SR_LINE_MAX ? len : SR_LINE_MAX] = '\0';
            all = all && line_is(row, line);
        }
        free(line);
        free(target);
    }
    ok(all, "methods and targets of all lengths, side by side and apart, at most %d bytes of them",
       SR_LINE_MAX);
    set(row, "GET /abc");
    ok(text_is(row, 1000, "GET /abc"), "plain text");
    set(row, "GET /\x80\x1b[1m\n\x7f~");
    ok(text_is(row, 1000, "GET /\\x80\\x1b[1m\\x0a\\x7f~"),
       "what a terminal could take for an order is escaped");
    ok(text_is(row, 8, "GET /"), "no half of an escape");
    ok(text_is(row, 9, "GET /\\x80"), "a whole one");
    ok(text_is(row, 0, ""), "no room");
    sr_row_request r;
    ok(sr_row_read(row, &r) && memcmp(&r.peer, &peer, sizeof peer) == 0 && r.began == 7,
       "and who asks, and since when");
}

static void marks(sr_row *row)
{
    char long_one[200];
    set(row, "GET /");
    ok(mark_is(row, ""), "no mark at first");
    mark(row, "report 7");
    ok(mark_is(row, "report 7") && line_is(row, "GET /"), "a mark beside the line");
    mark(row, "a\nb\x1b[2J\x7f\xc2\x9b\xc2\xa0\xc3\x9f");
    ok(mark_is(row, "a b [2J   \xc2\xa0\xc3\x9f"), "without orders to a terminal");
    memset(long_one, 'x', sizeof long_one);
    long_one[63] = '\0';
    mark(row, long_one);
    ok(mark_is(row, long_one), "63 bytes");
    snprintf(long_one + 62, 10, "\xc3\x9fy");
    mark(row, long_one);
    long_one[62] = '\0';
    ok(mark_is(row, long_one), "of more bytes whole characters");
    mark(row, "");
    ok(mark_is(row, ""), "it can be cleared");
    mark(row, "again");
    sr_row_end(row);
    sr_row_request r;
    ok(mark_is(row, "") && sr_row_read(row, &r) && !r.began, "it ends with its request");
    set(row, "GET /next");
    ok(mark_is(row, ""), "and is none of the next one");
}

static void survival(void)
{
    sr_scoreboard *s = sr_scoreboard_new(2, 0);
    int32_t slot = sr_scoreboard_claim(s, 1);
    sr_row *row = &s->rows[slot];
    sr_row_request r;
    sr_counters sum;
    sr_counters_add(&row->counters.requests, 10);
    sr_counters_add(&row->counters.closed[SR_CLOSED_CLIENT], 1);
    sr_counters_add(&s->rows[1].counters.requests, 5);
    row->connections = 3; /* killed with them */
    set(row, "GET /");
    row->sequence = 7; /* odd: in the middle of writing */
    ok(!sr_row_read(row, &r), "a request whose writer was killed can't be read");
    sr_scoreboard_release(s, (uint32_t)slot);
    is_int((long long)row->counters.requests, 10, "counters go on with the next worker");
    ok(row->counters.closed[SR_CLOSED_CLIENT] == 1 && row->counters.closed[SR_CLOSED_ERROR] == 3,
       "the connections of the one that was killed are closed");
    ok(row->began == 0, "its request is over");
    is_int(sr_scoreboard_claim(s, 1), slot, "the next worker");
    is_int(row->pid, -getpid(), "claimed by this process");
    ok(!sr_scoreboard_occupy(s, (uint32_t)slot, getpid() + 1), "for no child of another");
    ok(sr_scoreboard_occupy(s, (uint32_t)slot, getpid()) && row->pid == getpid(), "but of this one");
    ok(!sr_scoreboard_occupy(s, (uint32_t)slot, getpid()), "and once");
    set(row, "GET /next");
    ok(line_is(row, "GET /next"), "and its line");
    sr_scoreboard_totals(s, &sum);
    ok(sum.requests == 15 && sum.closed[SR_CLOSED_ERROR] == 3, "all rows together");
    sr_scoreboard_free(s);
}

static void forget(sr_scoreboard *s)
{
    if (!s)
        return;
    munmap(s->shared, s->size);
    free(s);
}

/* A scoreboard of another build is refused, whichever is larger */
static void layouts(void)
{
    sr_scoreboard *s = sr_scoreboard_new(3, 0);
    off_t size = (off_t)s->size;
    FILE *file = tmpfile();
    int fd = fileno(file);
    is_int(ftruncate(fd, size), 0, "a copy of a scoreboard");
    sr_board *b = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memcpy(b, s->shared, s->size);
    b->memfd = fd;
    for (int by = -128; by <= 128; by += 128) {
        sr_scoreboard *other = NULL;
        b->size = (size_t)(size + by);
        if (ftruncate(fd, size + by) == 0)
            other = sr_scoreboard_adopt(fd);
        ok(by ? !other && errno == EINVAL : other != NULL, "%+d bytes", by);
        forget(other);
    }
    b->size = (size_t)size;
    is_int(ftruncate(fd, size), 0, "its own size again");
    for (int bit = 0; bit < 32; bit++) {
        b->layout = SR_SCOREBOARD_LAYOUT ^ 1U << bit;
        if (sr_scoreboard_adopt(fd) || errno != EINVAL)
            ok(0, "a layout that differs in bit %d is adopted", bit);
    }
    b->layout = SR_SCOREBOARD_LAYOUT;
    sr_scoreboard *same = sr_scoreboard_adopt(fd);
    ok(same != NULL, "the same layout, of all that are like it, is adopted");
    forget(same);
    b->memfd = fd + 1;
    ok(!sr_scoreboard_adopt(fd), "but not by another descriptor");
    sr_scoreboard *seen = sr_scoreboard_look(fd);
    ok(seen && seen->slots == 3, "by which it can be looked at");
    forget(seen);
    munmap(b, s->size);
    fclose(file);
    sr_scoreboard_free(s);
}

/* A worker can write to all of it, and leads nobody elsewhere by that */
static void spoiled(void)
{
    sr_scoreboard *s = sr_scoreboard_new(2, 1);
    sr_counters sum;
    sr_row *row;
    int fd = s->memfd;
    s->shared->slots = s->shared->edges = UINT32_MAX;
    s->shared->memfd = 0;
    s->shared->size = SIZE_MAX / 2;
    ok(s->slots == 2 && s->edges == 1 && s->rows == s->shared->rows,
       "numbers that a worker has written count for nobody");
    sr_scoreboard_totals(s, &sum);
    is_int((long long)sum.requests, 0, "its rows can be summed up");
    is_int(sr_scoreboard_claim(s, 1), 0, "one can be claimed");
    is_int(sr_scoreboard_claim(s, 1), 1, "another one");
    is_int(sr_scoreboard_claim(s, 1), -1, "and no more than there are");
    is_int((long long)sr_scoreboard_waiting(s), 0, "edges can be asked");
    ok(!sr_scoreboard_adopt(fd) && errno == EINVAL && !sr_scoreboard_map(fd, 0, &row),
       "who comes later sees that it is spoiled");
    sr_scoreboard_mend(s);
    sr_scoreboard *other = sr_scoreboard_adopt(fd);
    ok(other && other->slots == 2, "until it is set right");
    forget(other);
    if (on_linux("nobody can make it shorter", "seals"))
        ok(ftruncate(fd, 0) != 0 && errno == EPERM, "nobody can make it shorter");
    sr_scoreboard_free(s);
    ok(fcntl(fd, F_GETFD) < 0 && fcntl(0, F_GETFD) >= 0, "its own descriptor is closed, and no other");
}

/* Where perl is, as a handler of a signal notes it */
static void perl_places(void)
{
    sr_scoreboard *s = sr_scoreboard_new(1, 0);
    sr_row *row = &s->rows[0];
    char file[SR_PLACE_MAX], path[1000];
    uint32_t line = 0;
    is_int(sr_row_place(row, file, &line), 0, "there is no place before one was told");
    sr_row_place_tell(row, "/srv/shop/lib/DB.pm", 4711);
    size_t len = sr_row_place(row, file, &line);
    ok(len == 19 && memcmp(file, "/srv/shop/lib/DB.pm", len) == 0 && line == 4711, "file and line");
    memset(path, 'x', sizeof path);
    memcpy(path + sizeof path - 6, "z.psgi", 6);
    path[sizeof path - 1] = 0;
    sr_row_place_tell(row, path, UINT32_MAX);
    len = sr_row_place(row, file, &line);
    ok(len == SR_PLACE_MAX && memcmp(file + len - 5, "z.psg", 5) == 0 && file[0] == 'x',
       "the end of a long path");
    sr_row_place_ask(row);
    is_int(sr_row_place(row, file, &line), 0, "asked again, it is forgotten");
    atomic_store(&row->place_len, SR_PLACE_MAX + 1);
    is_int(sr_row_place(row, file, &line), 0, "a length that nobody writes");
    sr_scoreboard_free(s);
}

/* Where each field is, by the sum of all places: it differs, so does the layout */
static void places(void)
{
    const size_t at[] = {
        offsetof(sr_board, slots),
        offsetof(sr_board, stopping),
        offsetof(sr_board, workers),
        offsetof(sr_board, size),
        offsetof(sr_board, memfd),
        offsetof(sr_board, exits),
        offsetof(sr_board, edge_exits),
        offsetof(sr_board, notes),
        offsetof(sr_board, rows),
        offsetof(sr_row, pid),
        offsetof(sr_row, generation),
        offsetof(sr_row, connections),
        offsetof(sr_row, idle),
        offsetof(sr_row, waiting),
        offsetof(sr_row, since),
        offsetof(sr_row, started),
        offsetof(sr_row, waiting_since),
        offsetof(sr_row, sequence),
        offsetof(sr_row, line_len),
        offsetof(sr_row, status),
        offsetof(sr_row, began),
        offsetof(sr_row, peer),
        offsetof(sr_row, mark_len),
        offsetof(sr_row, place_len),
        offsetof(sr_row, spooled),
        offsetof(sr_row, place_line),
        offsetof(sr_row, has_failed),
        offsetof(sr_row, line),
        offsetof(sr_row, mark),
        offsetof(sr_row, place),
        offsetof(sr_row, counters),
        offsetof(sr_counters, trouble),
        offsetof(sr_board, watched),
        offsetof(sr_board, trouble_errno),
        offsetof(sr_board, longest_wait),
        offsetof(sr_counters, requests),
        sizeof(sr_board),
        sizeof(sr_row),
        sizeof(sr_counters),
        SR_CLOSED_REASONS,
        SR_REFUSALS,
        SR_EXIT_CAUSES,
        SR_LIMITS,
        SR_TROUBLES,
        SR_HISTOGRAM_BUCKETS,
        SR_WORKER_DRAINING,
        offsetof(sr_paths, other),
        offsetof(sr_path_row, times),
        offsetof(sr_exceptions, at),
        offsetof(sr_exception, of),
    };
    unsigned sum = 1;
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        sum = sum * 31 + (unsigned)at[i];
    is_int(SR_SCOREBOARD_LAYOUT >> 24, 28, "the first number of the layout");
    if (sizeof(size_t) == 8) /* 32 bits have other places */
        is_int(sum, 2662803597, "stands for these places: where they change, it is counted up");
}

static void write_for_ever(sr_row *row)
{
    char text[26][SR_LINE_MAX];
    sr_peer from = peer;
    for (int i = 0; i < 26; i++)
        memset(text[i], 'a' + i, sizeof text[i]);
    for (unsigned i = 0; getppid() != 1; i++) {
        from.port = (uint16_t)(i % 26);
        sr_row_begin(row, sr_bytes_of(text[i % 26], 49), sr_bytes_of(text[i % 26], i % 26 * 5), &from,
                     i % 26 + 1);
        sr_row_mark(row, text[i % 26], 20 + i % 26);
        if (i % 3 == 0)
            sr_row_end(row);
    }
}

/* All of it speaks of one letter, which method and target consist of */
static bool of_one(const sr_row_request *r)
{
    const char *line = (const char *)r->line, *at = (const char *)r->mark;
    unsigned letter = (unsigned)(*line - 'a');
    bool good = r->line_len == 50 + letter * 5 && r->peer.port == letter &&
                (r->began == letter + 1 || r->began == 0) && (r->mark_len == 20 + letter || r->mark_len == 0);
    for (size_t i = 0; i < r->line_len; i++)
        good = good && line[i] == (i == 49 ? ' ' : *line);
    for (size_t i = 0; i < r->mark_len; i++)
        good = good && at[i] == *line;
    return good;
}

/* Of two requests is torn. In another process, as the supervisor is */
static void torn(void)
{
    sr_scoreboard *s = sr_scoreboard_new(1, 0);
    sr_row *row = &s->rows[0];
    pid_t writer = fork();
    if (writer == 0) {
        write_for_ever(row);
        _exit(0);
    }
    long whole = 0, none = 0, bad = 0;
    sr_row_request r;
    for (int64_t end = sr_clock_monotonic() + SR_SECOND / 2; sr_clock_monotonic() < end;) {
        if (!sr_row_read(row, &r) || !r.line_len)
            none++;
        else if (of_one(&r))
            whole++;
        else
            bad++;
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    is_int(bad, 0, "nothing torn");
    ok(whole > 0, "%ld whole ones, %ld times none while they change all the time", whole, none);
    sr_scoreboard_free(s);
}

/* What can't be made or adopted, and errno then. */
static void exits(void)
{
    sr_scoreboard *s = sr_scoreboard_new(1, 0), *other = sr_scoreboard_adopt(s->memfd);
    for (unsigned i = 0; i < SR_EXIT_CAUSES; i++) {
        ok(strlen(sr_exit_name((sr_exit)i)) > 3, "cause %u is %s", i, sr_exit_name((sr_exit)i));
        for (unsigned j = 0; j <= i; j++)
            sr_scoreboard_exited(j & 1 ? s : other, (sr_exit)i);
    }
    bool right = true;
    for (unsigned i = 0; i < SR_EXIT_CAUSES; i++)
        right = right && atomic_load(&other->shared->exits[i]) == i + 1;
    ok(right, "who has it mapped counts in the same place");
    forget(other);
    sr_scoreboard_free(s);
}

static bool told_is(const sr_scoreboard *s, const char *want, size_t len)
{
    char out[SR_NOTE_MAX];
    return sr_scoreboard_told(s, SR_NOTE_ADMIN, out) == len && memcmp(out, want, len) == 0;
}

static void news(void)
{
    sr_scoreboard *s = sr_scoreboard_new(1, 0), *other = sr_scoreboard_adopt(s->memfd);
    char text[SR_NOTE_MAX + 1];
    ok(told_is(s, "", 0), "nothing at first");
    bool right = true;
    for (size_t len = 0; len <= SR_NOTE_MAX; len += len < 20 ? 1 : 509) {
        memset(text, 'a' + (int)(len % 26), len);
        char *exact = malloc(len ? len : 1); /* the sanitizer sees who reads on */
        memcpy(exact, text, len);
        right = right && sr_scoreboard_tell(s, SR_NOTE_ADMIN, exact, len) && told_is(other, text, len);
        free(exact);
    }
    ok(right, "texts of all lengths, read in another mapping");
    ok(sr_scoreboard_tell(s, SR_NOTE_ADMIN, "short", 5) &&
           !sr_scoreboard_tell(s, SR_NOTE_ADMIN, text, SR_NOTE_MAX + 1) && told_is(other, "short", 5),
       "one that is too long changes nothing");
    atomic_fetch_add(&s->shared->notes[SR_NOTE_ADMIN].sequence, 1);
    ok(told_is(other, "", 0), "who was killed while it wrote: nothing is told");
    ok(sr_scoreboard_tell(s, SR_NOTE_ADMIN, "again", 5) && told_is(other, "again", 5),
       "and the next writer sets it right");
    atomic_store(&s->shared->notes[SR_NOTE_ADMIN].len, SR_NOTE_MAX + 1);
    ok(told_is(other, "", 0), "a length that cannot be");
    char out[SR_NOTE_MAX];
    is_int((long long)sr_scoreboard_told(s, SR_NOTE_SUPERVISOR, out), 0, "it is one of several");
    forget(other);
    sr_scoreboard_free(s);
}

static void refused(void)
{
    errno = 0;
    ok(!sr_scoreboard_new(0, 0) && errno == EINVAL, "no slots");
    ok(!sr_scoreboard_new(SR_SLOTS_MAX + 1, 0) && errno == EINVAL, "too many slots");
    ok(!sr_scoreboard_adopt(-1) && errno == EBADF, "no descriptor");
    FILE *file = tmpfile();
    ok(!sr_scoreboard_adopt(fileno(file)) && errno == EINVAL, "an empty file");
    ok(ftruncate(fileno(file), sizeof(sr_board) + 3) == 0 && !sr_scoreboard_adopt(fileno(file)) &&
           errno == EINVAL,
       "a file of something else");
    fclose(file);
    struct rlimit before, few;
    getrlimit(RLIMIT_NOFILE, &before);
    int lowest = dup(0);
    close(lowest);
    few = (struct rlimit){(rlim_t)lowest, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    ok(!sr_scoreboard_new(3, 0) && errno == EMFILE, "no descriptor");
    setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
    sr_row row = {0};
    layout();
    lines(&row);
    marks(&row);
    ids(&row);
    survival();
    layouts();
    spoiled();
    perl_places();
    places();
    torn();
    exits();
    news();
    refused();
    return done_testing();
}
