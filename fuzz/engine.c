/*
 * engine: a whole worker without Perl and a client that sends these bytes, then ends. Whole, in random pieces, and in
 * pieces while the connection moves through the exchange again and again, the client must read the same. The
 * second input of a handover is any parcel at all: what does not add up is dropped, and nothing is left behind.
 * Judges: src/core/intake.c src/core/body.c src/core/handover.c src/core/connection.c
 */
#include "core/parts.h"

#include "fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

typedef enum manner { WHOLE, PIECES, MOVING } manner;

static sr_engine *engine(void)
{
    static sr_engine *e;
    static sr_exchange x;
    if (e)
        return e;
    sr_config config = {.request = {.line = 200, .head = 1000, .fields = 10},
                        .max_body = 2000,
                        .body_memory = 100,
                        .header_ns = 1000 * SR_SECOND,
                        .idle_ns = 1000 * SR_SECOND,
                        .body_ns = 1000 * SR_SECOND,
                        .write_ns = 1000 * SR_SECOND,
                        .linger_ns = 1000 * SR_SECOND,
                        .keepalive = true,
                        .max_keepalive_reqs = 20,
                        .max_connections = 100,
                        .max_queue = 100,
                        .report_fd = -1,
                        .tmpdir = "/tmp"};
    MUST(sr_exchange_open(&x) == 0);
    MUST(sr_engine_new(&e, &config, sr_scoreboard_new(2, 0), 0, -1) == 0);
    sr_engine_exchange(e, x.give, x.take);
    sr_engine_listen(e, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), true); /* nobody connects */
    return e;
}

/* The answer tells what of the request reached the application. A foreign parcel may lie about its body. */
static void answer(sr_engine *e, const sr_task *task, bool foreign)
{
    sr_conn *c = task->conn;
    const sr_request *r = task->request;
    char text[200], body[2048];
    uint64_t hash = fuzz_hash(r->minor, task->base + r->head_start, r->head_len - r->head_start);
    if (task->body_fd >= 0) {
        MUST(task->body.len == 0 && (foreign || task->body_length <= sizeof body));
        ssize_t n = pread(task->body_fd, body, sizeof body, 0);
        MUST(foreign || n == (ssize_t)task->body_length);
        hash = fuzz_hash(hash, body, n > 0 ? (size_t)n : 0);
        close(task->body_fd);
    } else {
        MUST(task->body.len == task->body_length);
        hash = fuzz_hash(hash, task->body.at, task->body.len);
    }
    sr_engine_lend(e);
    sr_engine_return(e);
    c->keep_alive = sr_engine_keeps(e, c);
    int n = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nX: %016llx\r\n%s\r\n", (unsigned long long)hash,
                     c->keep_alive ? "" : "Connection: close\r\n");
    sr_engine_send(e, c, &(struct iovec){text, (size_t)n}, 1);
    sr_engine_finish(e, c);
}

/* All that can be done now. Behind the second wake-up every event of before the first was seen. */
static void work(sr_engine *e, bool foreign)
{
    sr_task task;
    for (int wakes = 0; wakes < 2 || !sr_link_alone(&e->turns);) {
        sr_engine_wake(e);
        sr_next what = sr_engine_next(e, &task);
        MUST(what == SR_NEXT_REQUEST || what == SR_NEXT_WAKE);
        wakes += what == SR_NEXT_WAKE;
        if (what == SR_NEXT_REQUEST)
            answer(e, &task, foreign);
    }
}

/* As the companion of a busy worker: what is complete goes into the exchange, and all else that can move. */
static void give(sr_engine *e)
{
    sr_task task;
    bool wake;
    e->event = 0;
    e->n_events = sr_loop_wait(&e->loop, e->events, 0);
    MUST(e->n_events >= 0);
    while (e->event < e->n_events) {
        sr_source *s = e->events[e->event++].data.ptr;
        if (s && sr_engine_event(e, s, &task, &wake) == SR_INTAKE_READY)
            sr_intake_park(e, &task);
    }
    sr_handover_give_turns(e);
    sr_handover_give_heads(e);
    sr_handover_give_idle(e, 64);
}

static void collect(int client, sr_buffer *in)
{
    for (;;) {
        MUST(sr_buffer_reserve(in, 65536));
        ssize_t n = recv(client, in->data + in->end, 65536, MSG_DONTWAIT);
        if (n <= 0)
            return;
        in->end += (size_t)n;
    }
}

/* What may differ: the second of the Date, and whether the client had to be told to go on. */
static void normalize(sr_buffer *in)
{
    static const char date[] = "\r\nDate: ", go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    char *at = sr_buffer_at(in), *end = at + sr_buffer_len(in), *found;
    while ((found = memmem(at, (size_t)(end - at), go_on, sizeof go_on - 1))) {
        memmove(found, found + sizeof go_on - 1, (size_t)(end - found) - (sizeof go_on - 1));
        end -= sizeof go_on - 1;
    }
    in->end = in->from + (size_t)(end - at);
    while ((found = memmem(at, (size_t)(end - at), date, sizeof date - 1)))
        memset(found, ' ', sizeof date - 1 + SR_DATE_LEN);
}

static void converse(const uint8_t *data, size_t size, manner how, sr_buffer *in)
{
    sr_engine *e = engine();
    fuzz_random random = fuzz_random_of(data, size, how);
    size_t most = 1 + size / (1 + fuzz_below(&random, 12)); /* few pieces: each costs some ten system calls */
    int pair[2];
    sr_buffer_reset(in);
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    sr_conn *c = sr_conn_new(pair[0], &(sr_peer){0}, 0);
    MUST(c);
    sr_conn_enter(e, c);
    sr_deadline_set(e, c, SR_DEADLINE_HEAD);
    MUST(sr_conn_watch(e, c, EPOLLIN));
    for (size_t at = 0; at < size;) {
        size_t len = how == WHOLE ? size : 1 + fuzz_below(&random, most);
        len = len < size - at ? len : size - at;
        send(pair[1], data + at, len, MSG_NOSIGNAL);
        at += len;
        if (how == MOVING && fuzz_below(&random, 2))
            give(e);
        work(e, false);
        collect(pair[1], in);
    }
    shutdown(pair[1], SHUT_WR);
    work(e, false);
    collect(pair[1], in);
    close(pair[1]);
    work(e, false);
    MUST(e->n_conns == 0 && sr_link_alone(&e->all) && e->pending == 0);
    normalize(in);
}

/* A message that no worker of this build would give: it ends, one way or the other. */
static void foreign(const uint8_t *data, size_t size)
{
    sr_engine *e = engine();
    sr_parcel p = {0};
    int fds[4];
    size_t head = size < sizeof p ? size : sizeof p;
    memcpy(&p, data, head);
    p.bytes = (uint32_t)(size - head);
    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    fds[2] = fds[1];
    fds[1] = dup(fds[0]); /* the "file" of a body */
    sr_bytes rest = {(const char *)data + head, size - head};
    sr_exchange_give(&e->exchange, &p, 1, fds, p.body == SR_PARCEL_FILE ? 2 : 1, &rest, 1);
    close(fds[0]);
    close(fds[1]);
    sr_handover_take(e);
    close(fds[2]);
    work(e, true);
    while (!sr_link_alone(&e->all))
        sr_conn_close(e, SR_LIST_ENTRY(e->all.next, sr_conn, all), SR_CLOSED_ERROR);
    MUST(e->n_conns == 0 && sr_link_alone(&e->turns));
}

FUZZ_TARGET(engine)
{
    static sr_buffer whole, other;
    if (size > 4096)
        return 0;
    converse(data, size, WHOLE, &whole);
    for (manner how = PIECES; how <= MOVING; how++) {
        converse(data, size, how, &other);
        MUST(sr_buffer_len(&whole) == sr_buffer_len(&other));
        MUST(memcmp(whole.data, other.data, sr_buffer_len(&whole)) == 0);
    }
    foreign(data, size);
    return 0;
}
