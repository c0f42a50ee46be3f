/*
 * turns: which request of connections with several streams gets into the queue next. The protocol is one of
 * the test, whose connections have as many exchanges as they want. There are no workers but in number, so
 * what is put into the queue waits there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "edge/turns.h"
#include "conn/protocol.h"
#include "edge/dispatch.h"
#include "edge/entry.h"
#include "http1/head.h"

#include "edge_site.h"
#include "tap.h"

#include <signal.h>
#include <sys/eventfd.h>

enum { ROWS = 4 };

static sr_edge *ed;
static int refused;

/* --- a protocol with streams, of which only the names of requests matter --- */

static void taken(sr_engine *e, sr_exchange *x)
{
    (void)e, (void)x;
}

static void refuse(sr_engine *e, sr_exchange *x, int status, sr_refusal why, const char *rule)
{
    (void)e, (void)status, (void)why, (void)rule;
    refused++;
    sr_exchange_abandon(e, x);
    sr_exchange_end(e, x);
}

static const sr_protocol streams = {.taken = taken, .refuse = refuse};

static sr_conn *conn_new(void)
{
    static const sr_peer nobody;
    sr_conn *c = sr_conn_new(eventfd(0, 0), &nobody, 0);
    sr_conn_enter(ed->engine, c);
    c->protocol = &streams;
    c->state = SR_CONN_STREAMS;
    return c;
}

static void conn_close(sr_conn *c)
{
    while (c->exchange) {
        sr_exchange *x = c->exchange;
        sr_exchange_abandon(ed->engine, x);
        sr_exchange_end(ed->engine, x);
    }
    sr_conn_close(ed->engine, c, SR_CLOSED_CLIENT);
}

/* A request, whose head is its name. */
static sr_exchange *ask(sr_conn *c, const char *name)
{
    static sr_request r;
    sr_exchange *x = sr_exchange_add(ed->engine, c);
    sr_task task = {.exchange = x, .request = &r, .base = name, .body_fd = -1};
    sr_request_init(&r);
    r.head_len = (uint32_t)strlen(name);
    sr_engine_tick(ed->engine);
    x->ready_at = ed->engine->now;
    x->stream = c;
    x->owed = false;
    sr_dispatch(ed, &task);
    return x;
}

static void ask_for(sr_conn *c, const char *names, sr_exchange **into)
{
    char name[2] = "";
    for (const char *at = names; *at; at++) {
        name[0] = *at;
        sr_exchange *x = ask(c, name);
        if (into)
            *into++ = x;
    }
}

/* The names of those in the queue, in their order. */
static const char *order(void)
{
    static char text[500];
    size_t n = 0;
    for (uint64_t number = ed->queue.first; number < ed->queue.put; number++) {
        uint32_t slot = ed->queue.requests->ring[number & ed->queue.requests->mask];
        const sr_slot *s = sr_queue_at(&ed->queue, slot);
        if (ed->entries[slot].number == number && n < sizeof text - 1)
            text[n++] = s->data[s->parse];
    }
    text[n] = '\0';
    return text;
}

static void is_order(const char *want, const char *name)
{
    const char *got = order();
    if (!ok(strcmp(got, want) == 0, "%s", name))
        printf("# got %s, want %s\n", got, want);
}

/* A worker is done with the oldest. */
static void done(void)
{
    for (uint64_t number = ed->queue.first; number < ed->queue.put; number++) {
        uint32_t slot = ed->queue.requests->ring[number & ed->queue.requests->mask];
        if (ed->entries[slot].number != number || !sr_queue_drop(&ed->queue, slot, number))
            continue;
        sr_exchange *x = ed->entries[slot].exchange;
        sr_entry_forget(ed, slot);
        sr_exchange_end(ed->engine, x);
        break;
    }
    sr_edge_step(ed, false);
}

/* So many workers, each of which takes what follows for 10 ms. */
static void begin(uint32_t workers)
{
    refused = 0;
    ed = edge_new();
    ed->n_workers = workers;
    ed->turns.call_ns = 10 * SR_MILLISECOND;
}

static void end(void)
{
    is_int((long long)ed->turns.n, 0, "nobody waits");
    is_int((long long)ed->turns.unnumbered, 0, "at all");
    is_int(ed->slots - ed->queue.n_free, 0, "and no slot is lost");
    ed->n_workers = 0;
    sr_sleepers_part(ed->sleepers, ed->number);
    sr_edge_free(ed);
}

/* --- the tests --- */

static void many_and_one(void)
{
    printf("# many and one\n");
    begin(2);
    sr_conn *a = conn_new(), *b = conn_new(), *c = conn_new();
    ask_for(a, "abcdefg", NULL);
    is_order("abc", "as many as there are workers, and one more");
    is_int((long long)ed->turns.n, 4, "the others wait");
    ask_for(b, "1", NULL);
    is_order("abc1", "another one's first does not wait with them");
    ask_for(b, "234", NULL);
    is_order("abc1", "its second does");
    ask_for(c, "X", NULL);
    is_order("abc1X", "a third one's first does not");
    for (int i = 0; i < 3; i++)
        done();
    is_order("1Xd", "a connection that has none left is next");
    done();
    is_order("Xd2", "likewise");
    done();
    is_order("d2e", "then they take turns");
    done();
    is_order("2e3", "each one in its own order");
    done();
    done();
    is_order("3f4", "and so on");
    conn_close(a);
    is_int((long long)ed->turns.n, 0, "a connection that is closed takes those with it that wait");
    is_order("34", "also in the queue");
    sr_edge_step(ed, false);
    conn_close(b);
    conn_close(c);
    end();
}

static void leaving(void)
{
    printf("# leaving\n");
    begin(1);
    sr_exchange *x[8];
    sr_conn *a = conn_new();
    ask_for(a, "abcdef", x);
    is_order("ab", "two in the queue");
    refuse(ed->engine, x[3], 503, SR_REFUSED_QUEUE, NULL);
    is_int((long long)ed->turns.n, 3, "one that waits is cancelled");
    refuse(ed->engine, x[0], 503, SR_REFUSED_QUEUE, NULL);
    refuse(ed->engine, x[1], 503, SR_REFUSED_QUEUE, NULL);
    sr_edge_step(ed, false);
    is_order("ce", "both in the queue are, and the next take their places");
    done();
    done();
    done();
    is_order("", "the last one is done");
    ask_for(a, "g", NULL);
    is_order("g", "its turn stays with the connection");
    conn_close(a);
    end();
}

/* A worker that runs on for a client that is gone. */
static void running_on(void)
{
    printf("# cancelled while it runs\n");
    begin(1);
    sr_conn *a = conn_new(), *b = conn_new();
    sr_exchange *x = ask(a, "a");
    uint32_t slot = x->slot - 1;
    atomic_store(&ed->queue.replies->claims[slot].word, ed->entries[slot].number << 16 | 1);
    ask_for(b, "12", NULL);
    sr_exchange_abandon(ed->engine, x);
    sr_exchange_end(ed->engine, x);
    ask_for(a, "b", NULL);
    is_order("1", "counts for its connection until its worker is done");
    conn_close(a);
    is_int((long long)ed->turns.n, 1, "and the connection may be closed before");
    sr_entry_forget(ed, slot);
    sr_edge_step(ed, false);
    is_order("12", "then it is another one's turn");
    conn_close(b);
    end();
}

/* While all workers are busy for long. */
static void overdue(void)
{
    printf("# overdue\n");
    begin(1);
    sr_conn *a = conn_new();
    sr_exchange *x = ask(a, "a");
    uint32_t slot = x->slot - 1;
    ask_for(a, "bcd", NULL);
    is_order("ab", "two in the queue");
    atomic_store(&ed->queue.replies->claims[slot].word, ed->entries[slot].number << 16 | 1);
    a->turn->at -= 2 * SR_SECOND;
    sr_edge_step(ed, false);
    is_order("b", "one that waits there is enough");
    slot = (uint32_t)(ed->queue.requests->ring[(ed->queue.put - 1) & ed->queue.requests->mask]);
    atomic_store(&ed->queue.replies->claims[slot].word, ed->entries[slot].number << 16 | 2);
    a->turn->at -= 2 * SR_SECOND;
    sr_edge_step(ed, false);
    is_order("c", "a connection whose last turn is long ago gets one");
    conn_close(a);
    for (uint32_t i = 0; i < ed->slots; i++)
        if (ed->entries[i].number)
            sr_entry_forget(ed, i);
    end();
}

/* Others that use the same workers. */
static void busy_elsewhere(void)
{
    printf("# other edges\n");
    begin(4);
    ed->others.running = 3;
    sr_conn *a = conn_new();
    ask_for(a, "abcdef", NULL);
    is_order("ab", "workers that are busy for another edge do not count");
    ed->others.running = 100;
    conn_close(a);
    a = conn_new();
    ask_for(a, "abcdef", NULL);
    is_order("a", "whatever it says of them");
    sr_edge_step(ed, false); /* which reads that there are no others */
    sr_edge_step(ed, false);
    is_order("abcde", "until they are free");
    conn_close(a);
    end();
}

/* Short calls: workers must not run dry between two steps of the loop. */
static void short_calls(void)
{
    printf("# short calls\n");
    begin(2);
    ed->turns.call_ns = 100 * 1000;
    sr_conn *a = conn_new();
    ask_for(a, "abcdefghijkl", NULL);
    is_order("abcdefgh", "as many as they do in 300 us");
    conn_close(a);
    end();
}

/* The queue is full. */
static void full(void)
{
    printf("# a full queue\n");
    begin(1);
    sr_conn *a = conn_new();
    char name[2] = "x";
    for (int i = 0; i < 103; i++)
        ask(a, name);
    is_int(refused, 3, "those that wait count for --max-queue");
    is_int((long long)ed->turns.n, 98, "the others wait");
    conn_close(a);
    end();
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    if (!site_open(ROWS))
        return 1;
    many_and_one();
    leaving();
    running_on();
    overdue();
    busy_elsewhere();
    short_calls();
    full();
    return done_testing();
}
