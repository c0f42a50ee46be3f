/*
 * transport: connections and outputs over a transport that takes what it likes, as one that encrypts does: it
 * swallows bytes before it admits that it has them, and holds some that the socket does not report.
 */
#include "conn/output.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Inverts each byte. Of each write it first takes nothing, having made a part of it ready. */
typedef struct odd {
    sr_transport base;
    char made[4096];
    size_t n_made;
    unsigned writes, wrong;
} odd;

static ssize_t odd_write(sr_transport *t, int socket, const struct iovec *iov, int n, int flags)
{
    odd *o = (odd *)t;
    (void)flags;
    char *at = iov[0].iov_base;
    size_t len = iov[0].iov_len;
    if (n != 1)
        abort();
    if (!o->n_made) {
        o->n_made = len < sizeof o->made ? len : sizeof o->made;
        for (size_t i = 0; i < o->n_made; i++)
            o->made[i] = (char)~at[i];
        o->writes++;
        errno = EAGAIN;
        return -1;
    }
    for (size_t i = 0; i < o->n_made; i++) /* the same bytes have to be offered again */
        o->wrong += len < o->n_made || (char)~at[i] != o->made[i];
    ssize_t sent = write(socket, o->made, o->n_made);
    o->n_made = 0;
    return sent;
}

static const sr_transport_ops ops = {.write = odd_write};

static size_t drain(int socket, char *to, size_t room)
{
    size_t got = 0;
    ssize_t n;
    while (got < room && (n = recv(socket, to + got, room - got, MSG_DONTWAIT)) > 0)
        got += (size_t)n;
    return got;
}

static void output(const char *name, bool file)
{
    enum { SIZE = 300 * 1000 };
    static char sent[SIZE], got[SIZE + 1];
    int pair[2];
    odd t = {.base.ops = &ops};
    uint64_t count = 0;
    size_t in = 0, turns = 0;
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (char)(i * 31 + i / 251);
    sr_output *o = sr_output_new();
    o->transport = &t.base;
    struct iovec iov = {sent, SIZE / 3};
    sr_output_keep(o, &iov, 1, 0, SR_KEEP_IN_MEMORY, "/tmp");
    iov = (struct iovec){sent + SIZE / 3, SIZE - SIZE / 3};
    if (file) {
        char path[] = "/tmp/sirius-transport-XXXXXX";
        int fd = mkstemp(path);
        unlink(path);
        ok(write(fd, iov.iov_base, iov.iov_len) == (ssize_t)iov.iov_len, "%s: a file", name);
        sr_output_file(o, fd, 0, iov.iov_len);
    } else {
        sr_output_keep(o, &iov, 1, 0, SR_KEEP_BY_SIZE, "/tmp");
    }
    sr_flush last = SR_FLUSH_AGAIN;
    for (; last == SR_FLUSH_AGAIN && turns < 10000; turns++) {
        last = sr_output_flush(o, pair[0], &count);
        in += drain(pair[1], got + in, sizeof got - in);
    }
    ok(last == SR_FLUSH_DONE, "%s: all of it is sent", name);
    ok(count == SIZE, "%s: and counted", name);
    ok(in == SIZE, "%s: and comes", name);
    ok(!t.wrong, "%s: what was not taken is offered again", name);
    bool same = true;
    for (size_t i = 0; i < SIZE; i++)
        same = same && got[i] == (char)~sent[i];
    ok(same, "%s: in order, through the transport", name);
    sr_output_free(o);
    close(pair[0]);
    close(pair[1]);
}

int main(void)
{
    output("memory and spool", false);
    output("memory and file", true);
    return done_testing();
}
