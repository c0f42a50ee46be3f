/*
 * backlog: how far a response may be ahead of its client (SR_PENDING_MAX). Its worker waits there, a worker
 * that does not is broken. The file of what is pending is sparse: it takes no room and no time
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "../../fuzz/moments.h"

#include "conn/output.h"
#include "conn/spools.h"
#include "net/tempfile.h"
#include "tap.h"

enum { SOME = 1000 };
#define WORKER_MAX ((uint64_t)SR_PENDING_MAX)
#define EDGE_MAX (WORKER_MAX + 4 * SR_RING_BYTES) /* of a worker that has not seen it yet */

static moments_client client;
static moments_worker *const worker = moments_workers;
static sr_output *out;
static int waits; /* of the worker for its client */

static bool gives_up(void)
{
    waits++;
    return false;
}

static bool has_patience(void)
{
    waits++;
    MUST(waits < 1000);
    moments_read(&client, 1 << 20);
    return moments_step();
}

static void settle(void)
{
    for (int i = 0; i < 5; i++)
        MUST(moments_step());
}

/*
 * A response has begun, and its client reads nothing. `written` bytes are in its file, `left` of them are to
 * be sent.
 */
static void begin(uint64_t written, uint64_t left)
{
    const moments_shape *shape = moments_shapes;
    while (strcmp(shape->name, "chunked") != 0)
        shape++;
    moments_begin();
    moments_hello(0);
    moments_connect(&client);
    moments_ask(&client, 1, shape);
    settle();
    MUST(moments_take(0) && moments_write(0) && moments_write(0));
    settle();
    sr_conn *c = moments_edge->entries[worker->w.index].exchange->conn;
    while (!c->out) { /* until its socket is full */
        char text[SOME] = "";
        MUST(sr_worker_write(&worker->w, &(struct iovec){text, sizeof text}, 1, false));
        sr_worker_flush(&worker->w);
        settle();
    }
    out = c->out;
    MUST(out->fd < 0 && (out->fd = sr_tempfile_open("/tmp")) >= 0 && ftruncate(out->fd, (off_t)written) == 0);
    out->spool = true;
    out->written = written;
    out->file_left = left;
    out->offset = (off_t)(written - left);
    sr_spools_took(written);
    sr_deliver_writable(moments_edge, c->exchange);
    waits = 0;
    moments_told();
}

static void end(void)
{
    moments_die(0);
    moments_died(0);
    moments_leave(&client);
    for (int i = 0; i < 4; i++) {
        moments_wait(3 * SR_SECOND);
        settle();
    }
    is_int(sr_spools_bytes(), 0, "nothing is left of it");
    moments_end();
    moments_told();
}

/* The worker writes one more piece, by the real clock. What may come while it waits is `meanwhile`. */
static bool writes(bool (*meanwhile)(void))
{
    int64_t now = moments_now;
    char text[SOME] = "";
    worker->w.interrupted = meanwhile;
    moments_now = 0;
    bool fine = sr_worker_write(&worker->w, &(struct iovec){text, sizeof text}, 1, false);
    moments_now = now;
    sr_worker_flush(&worker->w);
    return fine;
}

static void worker_waits(void)
{
    uint64_t few = WORKER_MAX - 100000;
    begin(few, few);
    ok(writes(gives_up) && !waits, "a worker goes on while less than SR_PENDING_MAX is pending");
    settle();
    ok(out->written > few, "and the edge keeps what it has written");
    end();

    begin(WORKER_MAX + 1, WORKER_MAX + 1);
    ok(!writes(gives_up) && waits, "it waits while more is pending");
    ok(worker->w.dropped, "and gives the response up if that is ended");
    end();

    begin(WORKER_MAX + 1, SOME);
    ok(!writes(gives_up) && waits, "also if most of it was sent, as the file is as large as it was");
    end();

    begin(WORKER_MAX + 1, 3 * SOME);
    ok(writes(has_patience) && waits, "it goes on when the client has read all of the file");
    ok(!*moments_told(), "and nobody is called broken");
    end();
}

static void edge_refuses(void)
{
    char text[SOME] = "";
    begin(EDGE_MAX, SOME);
    out->file_left += EDGE_MAX - sr_output_pending(out);
    moments_say(&worker->w, SR_REPLY_DATA, text, sizeof text);
    sr_deliver(moments_edge, &moments_edge->workers[0]);
    ok(!strstr(moments_told(), "broken"),
       "the edge keeps what may have been written before the worker saw it");
    end();

    begin(EDGE_MAX + 1, EDGE_MAX + 1);
    moments_say(&worker->w, SR_REPLY_DATA, text, sizeof text);
    sr_deliver(moments_edge, &moments_edge->workers[0]);
    ok(strstr(moments_told(), "broken"), "a worker that goes on all the same is broken");
    end();
}

int main(void)
{
    worker_waits();
    edge_refuses();
    return done_testing();
}
