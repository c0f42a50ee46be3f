/* overdue: requests that are with the application for too long */
#include "held.h"

#include <fcntl.h>

static _Atomic int refused; /* sr_engine_write has said that nobody is there */

static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n";

static struct iovec text(const char *at)
{
    return (struct iovec){(void *)at, strlen(at)};
}

/* A byte each 100 ms */
static void drip(sr_engine *e, sr_conn *c)
{
    struct iovec iov = text(head);
    sr_engine_write(e, c, &iov, 1);
    for (int i = 0; i < 8; i++) {
        sr_engine_lend(e);
        sleep_ms(100);
        sr_engine_return(e);
        iov = text("x");
        sr_engine_write(e, c, &iov, 1);
    }
    sr_engine_finish(e, c);
}

/*
 * Late answers: /held/send, write, file, abort, and after a 103: hint. /held/begun: a head and half a body, then nothing.
 * /held/whole: all of it, then nothing. /held/kept: a file that waits for finish. /held/io: the socket is the application's.
 */
static void held(worker *w, sr_conn *c, const char *path)
{
    sr_engine *e = w->e;
    struct iovec first = text(head), body = text("12345678"), half = text("1234"), both[2] = {first, body};
    path += 6;
    c->keep_alive = true;
    if (strcmp(path, "drip") == 0) {
        drip(e, c);
        return;
    }
    bool begun = strcmp(path, "begun") == 0, whole = strcmp(path, "whole") == 0,
         kept = strcmp(path, "kept") == 0;
    if (begun || whole)
        sr_engine_write(e, c, &first, 1);
    if (begun)
        sr_engine_write(e, c, &half, 1);
    if (whole)
        c->whole = sr_engine_write(e, c, &body, 1);
    if (kept)
        sr_engine_send_file(e, c, &first, 1, open("/proc/self/exe", O_RDONLY), 0, 8);
    if (strcmp(path, "io") == 0)
        c->borrowed = true;
    if (strcmp(path, "hint") == 0) {
        struct iovec hint = text("HTTP/1.1 103 Early Hints\r\n\r\n");
        sr_engine_write_interim(e, c, &hint, 1);
    }
    hold(e);
    if (begun || strcmp(path, "abort") == 0) {
        sr_engine_abort(e, c);
        return;
    }
    if (strcmp(path, "write") == 0)
        atomic_store(&refused, !sr_engine_write(e, c, &first, 1) && !sr_engine_write(e, c, &body, 1));
    else if (strcmp(path, "file") == 0)
        sr_engine_send_file(e, c, &first, 1, open("/proc/self/exe", O_RDONLY), 0, 8);
    else if (!whole && !kept)
        sr_engine_send_last(e, c, both, 2);
    sr_engine_finish(e, c);
}

/* The next report, "" when there is none for so long */
static const char *reported(int ms)
{
    static char line[1000];
    struct pollfd p = {.fd = report[0], .events = POLLIN};
    ssize_t n = poll(&p, 1, ms) > 0 ? read(report[0], line, sizeof line - 1) : 0;
    line[n > 0 ? n : 0] = '\0';
    return line;
}

/* It is "PID timeout WHAT N.N s, END\n", N.N from `least` on */
static bool is_reported(const char *what, double least, const char *end)
{
    char want[500];
    int pid = 0, at = 0, rest = 0;
    double seconds = 0;
    const char *line = reported(10000);
    bool good = sscanf(line, "%d timeout %n", &pid, &at) == 1 && pid == getpid() &&
                strncmp(line + at, what, strlen(what)) == 0 &&
                sscanf(line + at + strlen(what), "%lf%n", &seconds, &rest) == 1 && seconds >= least;
    snprintf(want, sizeof want, " s, %s\n", end);
    good = good && strcmp(line + at + strlen(what) + rest, want) == 0;
    if (!good)
        printf("# reported: %s\n", line);
    return ok(good, "it is reported");
}

/* --- before a response has begun --- */

static void late(const char *path)
{
    client c = client_open(&s, 0), other = client_open(&s, 0);
    atomic_store(&go_on, 0);
    int64_t start = sr_clock_monotonic();
    client_get(&c, path);
    client_get(&c, "/");
    int status = client_response(&c);
    if (strcmp(path, "/held/hint") == 0)
        status = status == 103 ? client_response(&c) : 0;
    ok(status == 504 && c.closes && ms_since(start) >= 700, "%s: 504 while the call runs", path);
    ok(client_ends(&c) && !c.reset, "then the end, and nothing for a request behind it");
    atomic_store(&go_on, 1);
    is_int(client_ask(&other, "/"), 200, "the worker goes on when the call is over");
    client_close(&c);
    client_close(&other);
}

/* Without a supervisor */
static void alone(void)
{
    static const char *const paths[] = {"/held/send",  "/held/write", "/held/file",
                                        "/held/abort", "/held/hint",  "/held/kept"};
    sr_config config = limits(700, 0);
    FILE *err = stderr_to(NULL);
    config.report_fd = -1;
    held_open(&config, 1);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        late(paths[i]);
    is_int(atomic_load(&refused), 1, "a late writer is told that nobody is there");
    client c = client_open(&s, 0);
    atomic_store(&go_on, 0);
    client_send(&c, "HEAD /held/send HTTP/1.0\r\n\r\n", 28);
    while (client_read(&c))
        ;
    ok(c.ended && !c.reset && c.len > 13 && strncmp(c.in, "HTTP/1.1 504 ", 13) == 0 &&
           strcmp(c.in + c.len - 4, "\r\n\r\n") == 0,
       "HEAD and HTTP/1.0: 504 without a body");
    atomic_store(&go_on, 1);
    client_close(&c);
    site_close(&s);
    ok(!*reported(0), "nothing for a supervisor");
    char all[4000], want[200];
    snprintf(want, sizeof want, "[sirius %d] error: GET /held/send ran for ", (int)getpid());
    ssize_t n = pread(fileno(err), all, sizeof all - 1, 0);
    all[n > 0 ? n : 0] = '\0';
    stderr_to(err);
    ok(strncmp(all, want, strlen(want)) == 0 && strstr(all, " s, the client got 504\n"),
       "a line of the log instead");
    int lines = 0;
    for (const char *at = all; (at = strchr(at, '\n')); at++)
        lines++;
    is_int(lines, 7, "one for each");
}

enum { KEPT = 20 };

/* What is here moves to the other worker, the timeout is told, and the worker ends with its call */
static void others_move(void)
{
    sr_config config = limits(1000, 0);
    client kept[KEPT], half;
    held_open(&config, 2);
    sr_row *row = &s.board->rows[0];
    for (int i = 0; i < KEPT; i++) {
        kept[i] = client_open(&s, 0);
        client_ask(&kept[i], "/");
    }
    half = client_open(&s, 0);
    client_send(&half, "GET / HT", 8);
    int64_t before = sr_clock_monotonic();
    client_get(&kept[0], "/held/send?x=%7f&y");
    ok(called(KEPT + 1), "one is with the application");
    sr_row_request seen;
    ok(sr_row_read(row, &seen) && seen.line_len == 22 && memcmp(seen.line, "GET /held/send?x=%7f&y", 22) == 0,
       "others see which");
    ok((int64_t)row->began > before - SR_SECOND && (int64_t)row->began <= sr_clock_monotonic(), "since when");
    held_start(1);
    ok(client_response(&kept[0]) == 504 && client_ends(&kept[0]), "its client gets 504");
    is_reported("GET /held/send?x=%7f&y ran for ", 1, "the client got 504");
    for (int i = 0; i < 2000 && atomic_load(&row->connections) != 1; i++)
        sleep_ms(5);
    is_int((long long)atomic_load(&row->connections), 1, "all other connections leave the worker");
    is_int((long long)atomic_load(&row->state), SR_WORKER_DRAINING, "it is draining");
    int second = 0;
    for (int i = 1; i < KEPT; i++)
        second += client_ask(&kept[i], "/") == 200 && kept[i].slot == 1;
    is_int(second, KEPT - 1, "the other one serves them");
    client_send(&half, "TP/1.1\r\nHost: a\r\n\r\n", 19);
    ok(client_response(&half) == 200 && half.slot == 1, "half a head as well");
    for (int i = 0; i < KEPT; i++) {
        client_close(&kept[i]);
        kept[i] = client_open(&s, 0);
        second += client_ask(&kept[i], "/") == 200 && kept[i].slot == 1;
    }
    is_int(second, 2 * KEPT - 1, "and who comes new");
    atomic_store(&go_on, 1);
    worker_end(&s.workers[0]);
    ok(!*reported(0), "the worker ends with its call, one report was made");
    ok(row->began == 0, "no request is left");
    for (int i = 0; i < KEPT; i++)
        client_close(&kept[i]);
    client_close(&half);
    site_close(&s);
}

static void left_alone(void)
{
    sr_config config = limits(600, 600);
    held_open(&config, 1);
    client c = client_open(&s, 0);
    client_get(&c, "/held/io");
    ok(!*reported(1000), "a socket that the application has taken is left alone");
    atomic_store(&go_on, 1);
    is_int(client_response(&c), 200, "its answer comes");
    client_close(&c);
    c = client_open(&s, 0);
    is_int(client_ask(&c, "/held/drip"), 200, "a response that comes slowly");
    client_close(&c);
    c = client_open(&s, 0);
    atomic_store(&go_on, 0);
    client_get(&c, "/held/whole");
    is_int(client_response(&c), 200, "a whole response");
    ok(!*reported(1000), "may be followed by as much work as the application likes");
    atomic_store(&go_on, 1);
    is_int(client_ask(&c, "/"), 200, "and by another request");
    client_close(&c);
    c = client_open(&s, 4096);
    client_get(&c, "/stream/8000000");
    ok(!*reported(1200), "a reader who reads nothing for a while: not the application's fault");
    ok(client_response(&c) == 200 && c.body_len == 8000000 && has_pattern(c.body, c.body_len),
       "all of it comes");
    client_close(&c);
    site_close(&s);
}

static void nobody_there(void)
{
    sr_config config = limits(1500, 0);
    struct linger reset = {.l_onoff = 1};
    held_open(&config, 1);
    client c = client_open(&s, 0);
    client_get(&c, "/held/send");
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ok(called(1), "a client that goes away");
    client_close(&c);
    is_reported("GET /held/send ran for ", 1.5, "the client was gone");
    atomic_store(&go_on, 1);
    site_close(&s);
}

/* --- once it has begun --- */

static void stands_still(const char *version)
{
    sr_config config = limits(600, 900);
    char request[100];
    held_open(&config, 1);
    client c = client_open(&s, 0);
    client_send(&c, request,
                (size_t)snprintf(request, sizeof request, "GET /held/begun %s\r\nHost: a\r\n\r\n", version));
    while (client_read(&c))
        ;
    ok(c.ended && c.len && !strstr(c.in, "504"), "%s: half a response, then nothing: cut", version);
    if (strcmp(version, "HTTP/1.0") == 0)
        ok(c.reset, "by a reset, for the end of the connection may be the end of a response");
    else
        ok(!c.reset && strstr(c.in, "\r\n\r\n1234"), "what was sent has come");
    is_reported("GET /held/begun stream stood still for ", 0.9, "cut");
    atomic_store(&go_on, 1);
    worker_end(&s.workers[0]);
    ok(true, "the worker ends with its call");
    client_close(&c);
    site_close(&s);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (pipe(report) < 0)
        return 1;
    alone();
    others_move();
    left_alone();
    nobody_there();
    stands_still("HTTP/1.1");
    stands_still("HTTP/1.0");
    return done_testing();
}
