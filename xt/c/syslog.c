/* syslog: one datagram a line, a receiver that is full, that goes, and that comes back */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "log/syslog.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "log/sink.h"
#include "tap.h"

static char dir[] = "/tmp/sirius-syslog-XXXXXX", text[65536];
static struct sockaddr_un to = {.sun_family = AF_UNIX};

static int receiver(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    unlink(to.sun_path);
    if (bind(fd, (struct sockaddr *)&to, sizeof to) != 0)
        exit(1);
    return fd;
}

static int sender(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        exit(1);
    return fd;
}

/* The next datagram as text, "" for none */
static const char *next(int fd)
{
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* Behind the header */
static const char *message(int fd)
{
    const char *at = strstr(next(fd), "]: ");
    return at ? at + 3 : "";
}

static bool matches(const char *pattern)
{
    regex_t re;
    if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return false;
    bool found = regexec(&re, text, 0, NULL, 0) == 0;
    regfree(&re);
    return found;
}

static void header(void)
{
    int in = receiver(), out = sender();
    char pattern[200];
    sr_buffer b;
    sr_syslog l;
    sr_buffer_init(&b);
    sr_syslog_init(&l, out, 0);
    is_int(sr_syslog_send(&l, out, &b), 0, "nothing");
    l.priority = 191;
    sr_buffer_add_bytes(&b, SR_BYTES("GET /\n\nlast\n"));
    is_int(sr_syslog_send(&l, out, &b), 0, "three lines are sent");
    is_int((long long)sr_buffer_len(&b), 0, "and taken");
    next(in);
    snprintf(pattern, sizeof pattern,
             "^<191>(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 123][0-9] "
             "[0-2][0-9]:[0-5][0-9]:[0-6][0-9] sirius\\[%d\\]: GET /$",
             (int)getpid());
    ok(matches(pattern), "the header of RFC 3164: %s", text);
    ok(message(in)[0] == '\0' && matches("]: $"), "an empty line");
    ok(strcmp(message(in), "last") == 0, "the last");
    is_int((long long)strlen(next(in)), 0, "no more");
    sr_buffer_free(&b);
    close(in);
    close(out);
}

static int fill(int out)
{
    int n = 0;
    while (send(out, "full", 4, MSG_DONTWAIT) == 4)
        n++;
    return n;
}

static void busy(void)
{
    int in = receiver(), out = sender();
    sr_buffer b;
    sr_syslog l;
    sr_buffer_init(&b);
    sr_syslog_init(&l, out, 0);
    int n = fill(out);
    sr_buffer_add_bytes(&b, SR_BYTES("one\ntwo\nthree\n"));
    is_int(sr_syslog_send(&l, out, &b), EAGAIN, "a receiver that is full");
    is_int((long long)sr_buffer_len(&b), 14, "all lines stay");
    next(in);
    is_int(sr_syslog_send(&l, out, &b), EAGAIN, "room for one");
    is_bytes(sr_buffer_at(&b), sr_buffer_len(&b), "two\nthree\n", "the others stay");
    while (n--)
        next(in);
    ok(strcmp(text + strlen(text) - 3, "one") == 0, "it has come");
    is_int(sr_syslog_send(&l, out, &b), 0, "room for all");
    ok(strcmp(message(in), "two") == 0 && strcmp(message(in), "three") == 0, "in order");
    sr_buffer_free(&b);
    close(in);
    close(out);
}

static void add(sr_sink *s, const char *at, int times)
{
    while (times--) {
        sr_buffer_add(sr_sink_line(s), at, strlen(at));
        sr_sink_added(s, sr_clock_monotonic());
    }
}

static void vanishes(void)
{
    int in = receiver();
    sr_sink *s = sr_sink_new(SR_SINK_SYSLOG, sender(), SR_SINK_BATCH);
    add(s, "before\n", SR_SYSLOG_BURST - 1);
    is_int((long long)strlen(next(in)), 0, "lines wait");
    add(s, "before\n", 1);
    is_int(sr_sink_due(s), 0, "until there is a burst of them");
    for (int i = 0; i < SR_SYSLOG_BURST; i++)
        ok(strcmp(message(in), "before") == 0 && matches("^<190>"), "line %d, local7.info", i);
    close(in);
    add(s, "gone\n", 2 * SR_SYSLOG_BURST);
    is_int((long long)sr_sink_lost(s), 2 * SR_SYSLOG_BURST, "the syslog is gone: its lines are lost");
    unlink(to.sun_path);
    add(s, "gone\n", 1);
    sr_sink_flush(s);
    is_int((long long)sr_sink_lost(s), 2 * SR_SYSLOG_BURST + 1, "its socket too");
    in = receiver();
    sr_sink_syslog(s, 8);
    add(s, "after\n", 1);
    sr_sink_flush(s);
    ok(strcmp(message(in), "after") == 0 && matches("^<8>"), "it is back, and so are the lines");
    is_int((long long)sr_sink_lost(s), 2 * SR_SYSLOG_BURST + 1, "nothing more is lost");
    close(in);
    sr_sink_free(s);
}

/* No room for long: as much as a batch is kept, and what is kept arrives */
static void overrun(void)
{
    int in = receiver(), out = sender(), n = fill(out), got = 0, lines = 0;
    sr_sink *s = sr_sink_new(SR_SINK_SYSLOG, out, 1000);
    add(s, "0123456789\n", 80);
    ok(sr_sink_lost(s) == 0 && sr_sink_due(s) > 0, "880 bytes wait for room");
    add(s, "0123456789\n", 20);
    uint64_t lost = sr_sink_lost(s);
    ok(lost > 80 && lost <= 100, "1,000 are too many");
    add(s, "kept\n", 60);
    while (n--)
        next(in);
    for (int i = 0; i < 100 && sr_sink_due(s); i++) {
        sr_sink_flush(s);
        while (*next(in)) {
            got += strcmp(text + strlen(text) - 4, "kept") == 0;
            lines++;
        }
    }
    ok(got == 60 && lines == 160 - (int)lost, "what was kept is sent when there is room");
    memset(text, 'x', 10000);
    memcpy(text + 10000, "\n", 2);
    add(s, text, 1);
    sr_sink_flush(s);
    is_int((long long)strlen(message(in)), SR_SYSLOG_LINE_MAX - 1, "a long line is cut");
    is_int((long long)sr_sink_lost(s), (long long)lost, "not lost");
    close(in);
    sr_sink_free(s);
}

int main(void)
{
    if (!mkdtemp(dir))
        return 99;
    snprintf(to.sun_path, sizeof to.sun_path, "%s/log", dir);
    header();
    busy();
    vanishes();
    overrun();
    unlink(to.sun_path);
    rmdir(dir);
    return done_testing();
}
