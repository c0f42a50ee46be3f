/* deadline: lists in order of time, one for each kind */
#include "conn/deadline.h"
#include "conn/expire.h"
#include "conn/lifetime.h"
#include "tap.h"

#include <unistd.h>

static sr_engine *e;
static const sr_config config = {
    .request = {.line = 8192, .head = 65536, .fields = 100},
    .max_body = 1 << 20,
    .body_memory = 4096,
    .header_ns = 100 * SR_MILLISECOND,
    .idle_ns = 200 * SR_MILLISECOND,
    .body_ns = 300 * SR_MILLISECOND,
    .body_rate = 10,
    .write_ns = 400 * SR_MILLISECOND,
    .linger_ns = 500 * SR_MILLISECOND,
    .handshake_ns = 700 * SR_MILLISECOND,
    .queue_ns = 600 * SR_MILLISECOND,
    .keepalive = true,
    .max_connections = 100,
    .max_queue = 10,
    .tmpdir = "/tmp",
};

/* A connection in the engine; *peer is the other end of its socket */
static sr_conn *conn(int *peer)
{
    int pair[2];
    sr_peer nobody = {0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
        return NULL;
    sr_conn *c = sr_conn_new(pair[0], &nobody, 0);
    sr_conn_enter(e, c);
    *peer = pair[1];
    return c;
}

/* The connections of a list are those, in this order */
static bool order(sr_deadline_kind kind, int n, sr_conn **want)
{
    sr_link *l = e->deadlines.list[kind].next;
    for (int i = 0; i < n; i++, l = l->next)
        if (l == &e->deadlines.list[kind] || sr_deadline_conn(l, kind) != want[i])
            return false;
    return l == &e->deadlines.list[kind];
}

static void lists(sr_conn **c)
{
    const int64_t ms = SR_MILLISECOND;
    is_int(sr_deadlines_timeout(e), -1, "nothing is due, ever");
    for (int i = 0; i < 4; i++) {
        sr_deadline_set(e, c[i], SR_DEADLINE_IDLE);
        e->now += 10 * ms;
    }
    ok(order(SR_DEADLINE_IDLE, 4, c), "set appends");
    is_int((long long)e->deadlines.n_idle, 4, "four are idle");
    is_int(sr_deadlines_timeout(e), 160, "the first is due 200 ms after it was set");
    sr_deadline_set(e, c[0], SR_DEADLINE_IDLE);
    ok(order(SR_DEADLINE_IDLE, 4, (sr_conn *[]){c[1], c[2], c[3], c[0]}),
       "setting it again moves it to the end");
    is_int((long long)e->deadlines.n_idle, 4, "four are idle still");
    int64_t second = c[2]->deadline.at;
    sr_deadline_keep(e, c[0], SR_DEADLINE_IDLE, second);
    ok(order(SR_DEADLINE_IDLE, 4, (sr_conn *[]){c[1], c[2], c[0], c[3]}), "keep puts it behind its equal");
    sr_deadline_keep(e, c[0], SR_DEADLINE_IDLE, 1);
    ok(order(SR_DEADLINE_IDLE, 4, (sr_conn *[]){c[0], c[1], c[2], c[3]}), "a very old one to the front");
    is_int(sr_deadlines_timeout(e), 0, "it is due now");
    sr_deadline_keep(e, c[0], SR_DEADLINE_IDLE, INT64_MAX);
    ok(order(SR_DEADLINE_IDLE, 4, (sr_conn *[]){c[1], c[2], c[3], c[0]}), "one without a limit to the end");
    is_int(c[0]->deadline.at, e->now + 200 * ms, "where it has the limit of its kind");
    sr_exchange *x = sr_exchange_begin(e, c[1]);
    sr_deadline_set_exchange(e, x, SR_DEADLINE_QUEUE);
    ok(e->deadlines.n_idle == 3 && order(SR_DEADLINE_QUEUE, 1, &c[1]), "from one list to another");
    sr_deadline_clear(e, c[1]);
    sr_deadline_clear(e, c[1]);
    ok(e->deadlines.n_idle == 3 && order(SR_DEADLINE_QUEUE, 0, NULL), "clear, twice");
    sr_deadline_set(e, c[1], SR_DEADLINE_HEAD);
    is_int(sr_deadlines_timeout(e), 100, "the first of all kinds counts");
    e->now += 1;
    is_int(sr_deadlines_timeout(e), 100, "rounded up");
    e->now += 99 * ms + ms / 2;
    is_int(sr_deadlines_timeout(e), 1, "never to 0 before its time");
    sr_deadline_clear(e, c[1]);
    is_int(sr_deadlines_timeout(e), 1, "a limit that was cleared may wake the loop");
    e->now += ms;
    ok(sr_deadlines_due(&e->deadlines, e->now) && sr_deadlines_timeout(e) > 1, "once");
    ok(!sr_deadlines_due(&e->deadlines, e->now), "and no more");
    x = sr_exchange_begin(e, c[1]);
    e->deadlines.limit[SR_DEADLINE_LOOK] = 10 * ms;
    sr_deadline_set_exchange(e, x, SR_DEADLINE_LOOK);
    is_int(sr_deadlines_timeout(e), 10, "the limit of a request that waits counts");
    int64_t due_at = x->deadline.at;
    sr_deadline_clear(e, c[1]);
    ok(sr_deadlines_timeout(e) > 1 && !sr_deadlines_due(&e->deadlines, due_at),
       "and wakes nobody once it is cleared");
}

static void shorten(sr_conn **c)
{
    const int64_t ms = SR_MILLISECOND;
    for (int i = 0; i < 4; i++) {
        sr_deadline_set(e, c[i], SR_DEADLINE_IDLE);
        e->now += 10 * ms;
    }
    sr_deadline_shorten(&e->deadlines, SR_DEADLINE_IDLE, 50 * ms);
    is_int(sr_deadlines_timeout(e), 10, "a shorter limit counts from when it was set");
    ok(order(SR_DEADLINE_IDLE, 4, c), "in the same order");
    sr_deadline_shorten(&e->deadlines, SR_DEADLINE_IDLE, 80 * ms);
    is_int(sr_deadlines_timeout(e), 10, "a longer one changes nothing");
    sr_deadline_set(e, c[0], SR_DEADLINE_IDLE);
    is_int(c[0]->deadline.at - e->now, 50 * ms, "and holds for what is set later");
}

static ssize_t readable(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT);
}

static void expire(sr_conn **c, int *peer)
{
    e->now += 30 * SR_MILLISECOND; /* c[1] to c[2] are due */
    sr_expire(e);
    is_int((long long)e->deadlines.n_idle, 2, "two expire");
    ok(readable(peer[1]) == 0 && readable(peer[2]) == 0, "their peers see the end");
    ok(readable(peer[3]) < 0 && readable(peer[0]) < 0, "those of the others do not");
    ok(send(peer[3], "G", 1, 0) == 1, "bytes that come at the last moment");
    e->now += 15 * SR_MILLISECOND;
    sr_expire(e);
    ok(readable(peer[3]) < 0 && c[3]->deadline.kind == SR_DEADLINE_HEAD, "keep the connection");
    e->now += 200 * SR_MILLISECOND;
    sr_expire(e);
    ok(c[3]->deadline.kind == SR_DEADLINE_HEAD && c[3]->deadline.at > e->now,
       "for longer, until they are read");
    ok(readable(c[3]->source.fd) == 1, "as they are");
    close(peer[1]);
    close(peer[2]);
    e->now += 1000 * SR_MILLISECOND;
    sr_expire(e);
    sr_expire(e);
    e->now += 1000 * SR_MILLISECOND;
    sr_expire(e);
    is_int((long long)e->n_conns, 0, "in the end all are gone");
    ok(readable(peer[0]) == 0, "by a close");
}

/* So many connections whose limits of this kind have begun */
static void crowd(int n, int *peer, sr_deadline_kind kind)
{
    for (int i = 0; i < n; i++)
        sr_deadline_set(e, conn(&peer[i]), kind);
}

static void leave(int n, const int *peer)
{
    for (int i = 0; i < n; i++)
        close(peer[i]);
}

static void many(void)
{
    enum { MANY = 40 };
    int peer[MANY], steps = 0;
    crowd(MANY, peer, SR_DEADLINE_LINGER);
    e->now += 1000 * SR_MILLISECOND;
    for (; e->n_conns && steps < MANY; steps++) {
        is_int(sr_deadlines_timeout(e), 0, "a step without a wait, for the rest");
        sr_expire(e);
    }
    is_int((long long)e->n_conns, 0, "of many that are due at once");
    ok(steps >= 3 && steps < MANY, "some are closed in each step (%d steps)", steps);
    leave(MANY, peer);
}

/*
 * Those that had to wait for their turn for longer than a second are not taken for clients that this process
 * has kept waiting.
 */
static void turns(void)
{
    enum { MANY = 60 };
    int peer[MANY];
    crowd(MANY, peer, SR_DEADLINE_HANDSHAKE);
    e->now += e->deadlines.limit[SR_DEADLINE_HANDSHAKE];
    for (int step = 0; step < 5; step++, e->now += 700 * SR_MILLISECOND)
        sr_expire(e);
    is_int((long long)e->n_conns, 0, "many that are due end within a few slow steps");
    leave(MANY, peer);
    crowd(1, peer, SR_DEADLINE_HANDSHAKE);
    sr_expire(e);
    e->now += e->deadlines.limit[SR_DEADLINE_HANDSHAKE] + 1500 * SR_MILLISECOND;
    sr_expire(e);
    is_int((long long)e->n_conns, 1, "after a standstill a client gets its time again");
    e->now += e->deadlines.limit[SR_DEADLINE_HANDSHAKE];
    sr_expire(e);
    is_int((long long)e->n_conns, 0, "once");
    leave(1, peer);
}

int main(void)
{
    sr_conn *c[4];
    int peer[4];
    is_int(sr_engine_new(&e, &config, -1), 0, "an engine");
    e->now = 1000 * SR_SECOND;
    for (int i = 0; i < 4; i++)
        c[i] = conn(&peer[i]);
    is_int((long long)e->n_conns, 4, "four connections");
    for (int i = 0; i < 4; i++)
        c[i]->requests = 1;
    lists(c);
    shorten(c);
    expire(c, peer);
    many();
    turns();
    sr_engine_free(e);
    return done_testing();
}
