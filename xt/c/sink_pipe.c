/* sink: pipes and what is like them: full, without a reader, shared by many processes */
#include "planned.h"

#include <sys/wait.h>

/* A sink whose lines come out at the returned descriptor */
static int open_pipe(sr_sink_kind kind, bool blocking)
{
    int ends[2];
    if (pipe2(ends, blocking ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK) != 0)
        exit(1);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[1], F_SETPIPE_SZ, 4096 * 2);
    sink = sr_sink_new(kind, ends[1], BATCH);
    return ends[0];
}

static void pipes(sr_sink_kind kind, bool blocking)
{
    int out = open_pipe(kind, blocking);
    lines(1, 400);
    uint64_t lost = sr_sink_lost(sink);
    ok(sr_sink_due(sink) == 0 && lost == 0, "there is room for 400 lines");
    lines(401, 1400);
    lost = sr_sink_lost(sink);
    ok(lost > 0 && sr_buffer_len(&sink->buffer) < BATCH, "full: what is more than a batch is lost");
    size_t waits = sink->lines;
    ok((sr_sink_due(sink) > 0) == (waits > 0), "the rest is tried again");
    slurp(out);
    is_int(whole_lines(), (long long)(1400 - lost - waits), "all others come out, whole");
    lines(1401, 1500);
    slurp(out);
    is_int(whole_lines(), (long long)waits + 100, "what waited and what is new");

    memset(text, 'y', 10000);
    text[9999] = '\n';
    add(text, 10000);
    sr_sink_flush(sink);
    slurp(out);
    ok(len == PIPE_BUF && text[PIPE_BUF - 1] == '\n', "a long line is cut to PIPE_BUF");
    close(out);
    lines(1, 5);
    is_int(sr_sink_due(sink), 0, "nobody reads: no signal, no waiting");
    done((long long)lost + 5, "and five lines lost");
}

/* More than the pipe holds, by four processes that all try again */
static void shared(void)
{
    int out = open_pipe(SR_SINK_PIPE, false), status, failed = 0;
    for (int i = 0; i < 4; i++) {
        if (fork() == 0) {
            sr_sink *own = sr_sink_new(SR_SINK_PIPE, dup(sink->fd), SR_SINK_BATCH);
            sr_sink_free(sink); /* is the parent's */
            sink = own;
            lines(1, 2000);
            while (sr_sink_due(sink)) {
                poll(NULL, 0, 1);
                sr_sink_flush(sink);
            }
            _exit(sr_sink_lost(sink) != 0);
        }
    }
    done(0, "a sink of the parent");
    fcntl(out, F_SETFL, 0);
    slurp(out);
    for (int i = 0; i < 4; i++) {
        wait(&status);
        failed += status != 0;
    }
    ok(failed == 0 && whole_lines() == 8000, "four processes write into one pipe: all lines come, whole");
    close(out);
}

static void sockets(void)
{
    int pair[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    fcntl(pair[1], F_SETFL, O_NONBLOCK);
    sink = sr_sink_new(SR_SINK_FILE, pair[0], BATCH);
    lines(1, 100000);
    uint64_t lost = sr_sink_lost(sink);
    ok(lost > 0, "a stream socket that is blocking, and full");
    size_t waits = sink->lines;
    slurp(pair[1]);
    is_int(whole_lines(), (long long)(100000 - lost - waits), "whole lines");
    close(pair[1]);
    lines(1, 1);
    done((long long)(lost + waits) + 1, "and nobody there");
}

/* Half a line has gone into a terminal or a socket */
static void half(void)
{
    int out = open_pipe(SR_SINK_PIPE, false), other;
    then(14, -EAGAIN, WHOLE);
    lines(1, 3);
    lines(4, 4);
    slurp(out);
    ok(whole_lines() == 4 && len == 48, "no room inside a line: the rest follows");
    then(14, -EIO, -EIO);
    lines(5, 7);
    lines(8, 8);
    lines(9, 9);
    slurp(out);
    is_bytes(text, len, "line 000005\nli\nline 000009\n", "an error: the next batch starts a line");
    then(14, -EAGAIN, -EAGAIN);
    lines(10, 12);
    slurp(out);
    close(out);
    out = sink->fd;
    int pair[2];
    ok(pipe2(pair, O_NONBLOCK) == 0, "a pipe");
    other = pair[0];
    sr_sink_replace(sink, pair[1]);
    lines(13, 13);
    slurp(other);
    is_bytes(text, len, "line 000012\nline 000013\n", "another descriptor begins with a whole line");
    close(other);
    done(2 + 1 + 1, "what was cut is lost");
}

int main(void)
{
    pipes(SR_SINK_PIPE, false);
    pipes(SR_SINK_FILE, true);
    shared();
    sockets();
    half();
    return done_testing();
}
