/* scoreboard: rows that outlive their workers, and the request line that others read while it changes */
#include "core/scoreboard.h"
#include "base/clock.h"
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void layout(void)
{
    is_int(_Alignof(sr_row), 128, "a row is aligned to two cache lines");
    is_int(sizeof(sr_row) % 128, 0, "and fills them");
    ok(offsetof(sr_row, line_sequence) / 128 > offsetof(sr_row, began) / 128,
       "its request line is not where others look for an idle colleague");
}

static bool line_is(const sr_row *row, const char *want)
{
    char out[SR_LINE_MAX];
    size_t len = sr_row_line(row, out, sizeof out);
    return len == strlen(want) && memcmp(out, want, len) == 0;
}

static bool text_is(const sr_row *row, size_t cap, const char *want)
{
    char out[1000];
    memset(out, '#', sizeof out);
    size_t len = sr_row_text(row, out, cap);
    return len == strlen(want) && memcmp(out, want, len) == 0 && out[len] == '#';
}

static void set(sr_row *row, const char *line)
{
    char request[100]; /* the target, and more behind it */
    sr_row_set_line(row, request, (size_t)snprintf(request, sizeof request, "%s HTTP/1.1\r\n", line) - 11);
}

static void lines(sr_row *row)
{
    ok(line_is(row, ""), "no line at first");
    bool all = true;
    for (size_t len = 0; len <= SR_LINE_MAX + 50; len++) {
        char *line = malloc(len + 7); /* exactly so long: the sanitizer sees who reads on */
        for (size_t i = 0; i < len + 7; i++)
            line[i] = (char)('a' + (i * 7 + len) % 26);
        sr_row_set_line(row, line, len);
        line[len > SR_LINE_MAX ? SR_LINE_MAX : len] = '\0';
        all = all && line_is(row, line);
        free(line);
    }
    ok(all, "lines of all lengths, at most %d bytes of them", SR_LINE_MAX);
    char out[4];
    set(row, "GET /abc");
    ok(sr_row_line(row, out, 4) == 4 && memcmp(out, "GET ", 4) == 0, "a small buffer gets the first bytes");
    ok(text_is(row, 1000, "GET /abc"), "plain text");
    set(row, "GET /\x80\x1b[1m\n\x7f~");
    ok(text_is(row, 1000, "GET /\\x80\\x1b[1m\\x0a\\x7f~"),
       "what a terminal could take for an order is escaped");
    ok(text_is(row, 8, "GET /"), "no half of an escape");
    ok(text_is(row, 9, "GET /\\x80"), "a whole one");
    ok(text_is(row, 0, ""), "no room");
}

static void survival(void)
{
    sr_scoreboard *s = sr_scoreboard_new(2);
    int32_t slot = sr_scoreboard_claim(s, 1);
    sr_row *row = &s->rows[slot];
    row->requests = 10;
    row->given = 11;
    row->taken = 12;
    row->began = 13;
    row->line_sequence = 7; /* odd: killed in the middle of writing */
    char out[SR_LINE_MAX];
    is_int((long long)sr_row_line(row, out, sizeof out), 0, "a line whose writer was killed is none");
    sr_scoreboard_release(s, (uint32_t)slot);
    ok(row->requests == 10 && row->given == 11 && row->taken == 12, "counters go on with the next worker");
    ok(row->began == 0, "its request does not");
    is_int(sr_scoreboard_claim(s, 1), slot, "the next worker");
    set(row, "GET /next");
    ok(line_is(row, "GET /next"), "and its line");
    sr_scoreboard_free(s);
}

/* Lines of one letter each: a mixture or a wrong length is torn. In another process, as the supervisor is */
static void torn(void)
{
    sr_scoreboard *s = sr_scoreboard_new(1);
    sr_row *row = &s->rows[0];
    pid_t writer = fork();
    if (writer == 0) {
        char line[26][SR_LINE_MAX];
        for (int i = 0; i < 26; i++)
            memset(line[i], 'a' + i, sizeof line[i]);
        for (unsigned i = 0; getppid() != 1; i++)
            sr_row_set_line(row, line[i % 26], 50 + i % 26 * 5);
        _exit(0);
    }
    long whole = 0, none = 0, bad = 0;
    char out[SR_LINE_MAX];
    for (int64_t end = sr_clock_monotonic() + SR_SECOND / 2; sr_clock_monotonic() < end;) {
        size_t len = sr_row_line(row, out, sizeof out);
        size_t same = 0;
        while (same < len && out[same] == *out)
            same++;
        if (!len)
            none++;
        else if (same == len && len == 50 + (size_t)(*out - 'a') * 5)
            whole++;
        else
            bad++;
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    is_int(bad, 0, "no torn line");
    ok(whole > 0, "%ld whole ones, %ld times none while they change all the time", whole, none);
    sr_scoreboard_free(s);
}

int main(void)
{
    sr_row row = {0};
    layout();
    lines(&row);
    survival();
    torn();
    return done_testing();
}
