/*
 * stress: an edge, clients that do everything at once, and workers that are killed. Two seconds, or as many
 * as the argument says, and on a busy machine until enough has happened. What a killed worker ran is answered
 * 502, or cut; nothing else fails, and no connection closes for a 502.
 */
#include "driver.h"
#include "tap.h"

#include <pthread.h>

enum { CLIENTS = 24, SLOTS = 3 };

static site s;
static _Atomic int over;
static _Atomic uint64_t answers, failures, losses, changes, seen, torn;

typedef struct thread {
    pthread_t id;
    unsigned seed;
} thread;

static unsigned next_random(thread *t)
{
    t->seed = t->seed * 1103515245u + 12345u;
    return t->seed >> 16;
}

static int asks(client *c, thread *t)
{
    static const char *const paths[] = {
        "/", "/", "/", "/sleep/1", "/sleep/4", "/sleep/15", "/big/500000", "/stream/200000", "/file/300000"};
    static const char post[] = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n";
    static const char chunked[] =
        "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    static char body[90000];
    unsigned what = next_random(t) % 12;
    int status;
    if (what < 9) {
        status = client_ask(c, paths[what]);
    } else if (what == 9) {
        client_send(c, post, sizeof post - 1);
        status = client_send(c, body, sizeof body) ? client_response(c) : 0;
    } else if (what == 10) {
        client_send(c, chunked, sizeof chunked - 1);
        status = client_response(c);
    } else {
        for (int i = 0; i < 5; i++)
            client_get(c, "/");
        for (int i = 0; i < 5 && (status = client_response(c)) == 200; i++)
            ;
    }
    if (status != 200 && status != 502 && status != -1)
        printf("# %u: status %d, %zu bytes, %s\n", what, status, c->len,
               c->ended ? c->reset ? "reset" : "eof" : "open");
    return status;
}

/* The first request comes at once: a connection that has sent nothing lives no longer than header_ns */
static client fresh(void)
{
    client c = client_open(&s, 0);
    int status = client_ask(&c, "/");
    atomic_fetch_add(&losses, status == 502);
    atomic_fetch_add(&failures, status != 200 && status != 502);
    return c;
}

static void *clients(void *arg)
{
    thread *t = arg;
    client c[4];
    for (int i = 0; i < 4; i++)
        c[i] = fresh();
    while (!atomic_load(&over)) {
        client *one = &c[next_random(t) % 4];
        int before = one->slot, status = asks(one, t);
        if (status == 200) {
            atomic_fetch_add(&answers, 1);
            atomic_fetch_add(&changes, before >= 0 && before != one->slot);
        } else if (status == 502) {
            atomic_fetch_add(&losses, 1); /* and the connection goes on */
        } else {
            atomic_fetch_add(status == -1 ? &losses : &failures, 1);
            client_close(one);
            *one = fresh();
        }
        if (next_random(t) % 50 == 0) {
            client_close(one);
            *one = fresh();
        }
    }
    for (int i = 0; i < 4; i++)
        client_close(&c[i]);
    return NULL;
}

/* Half heads, silence, refusals, and who goes away early: nobody counts their answers */
static void *nuisance(void *arg)
{
    thread *t = arg;
    static const char *const texts[] = {"GET / HT",
                                        "",
                                        "BAD\r\n\r\n",
                                        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
                                        "GET /big/3000000 HTTP/1.1\r\nHost: a\r\n\r\n",
                                        "GET /sleep/10 HTTP/1.1\r\nHost: a\r\n\r\n",
                                        "GET /cut HTTP/1.1\r\nHost: a\r\n\r\n"};
    client c[6] = {{.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}, {.fd = -1}};
    while (!atomic_load(&over)) {
        client *one = &c[next_random(t) % 6];
        client_close(one);
        *one = client_open(&s, 4096);
        const char *text = texts[next_random(t) % 7];
        client_send(one, text, strlen(text));
        sleep_ms(next_random(t) % 20);
    }
    for (int i = 0; i < 6; i++)
        client_close(&c[i]);
    return NULL;
}

/* What the supervisor does: request lines of all workers, while they change */
static void *watcher(void *arg)
{
    static const char *const lines[] = {"",
                                        "GET /",
                                        "GET /sleep/1",
                                        "GET /sleep/4",
                                        "GET /sleep/15",
                                        "GET /sleep/10",
                                        "GET /big/500000",
                                        "GET /big/3000000",
                                        "GET /stream/200000",
                                        "GET /file/300000",
                                        "GET /cut",
                                        "POST /echo"};
    enum { N = sizeof lines / sizeof *lines };
    sr_row_request r;
    for (uint32_t slot = 0; !atomic_load(&over); slot = (slot + 1) % SLOTS) {
        size_t i = 0, len = sr_row_read(&s.board->rows[slot], &r) ? r.line_len : 0;
        while (i < N && (strlen(lines[i]) != len || memcmp(lines[i], r.line, len) != 0))
            i++;
        if (len && r.peer.family != 4)
            i = N;
        atomic_fetch_add(i < N ? &seen : &torn, i != 0);
        if (slot == 0)
            sleep_ms(1);
    }
    return arg;
}

static bool enough(void)
{
    return atomic_load(&answers) > 100 && atomic_load(&changes) > 10 && atomic_load(&seen) > 100;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    sr_config config = config_default();
    thread threads[CLIENTS / 4 + 2];
    pthread_t watching;
    int kills = 0;
    config.header_ns = config.body_ns = config.write_ns = 300 * SR_MILLISECOND;
    config.idle_ns = 30 * SR_SECOND;
    setvbuf(stdout, NULL, _IOLBF, 0);
    site_open(&s, &config, SLOTS);
    for (int i = 0; i < CLIENTS / 4 + 2; i++) {
        threads[i].seed = (unsigned)i * 77 + 5;
        pthread_create(&threads[i].id, NULL, i < CLIENTS / 4 ? clients : nuisance, &threads[i]);
    }
    pthread_create(&watching, NULL, watcher, NULL);
    int64_t now, end = sr_clock_monotonic() + (int64_t)(seconds * 1e9), limit = end + 60 * SR_SECOND;
    for (uint32_t slot = 0; (now = sr_clock_monotonic()) < end || (!enough() && now < limit);
         slot = (slot + 1) % SLOTS) {
        sleep_ms(250);
        worker_kill(&s, slot); /* and another takes its place */
        worker_start(&s, slot);
        kills++;
    }
    atomic_store(&over, 1);
    for (int i = 0; i < CLIENTS / 4 + 2; i++)
        pthread_join(threads[i].id, NULL);
    pthread_join(watching, NULL);
    printf(
        "# %llu answers, %d workers killed, %llu requests lost with them, %llu changes of the worker seen\n",
        (unsigned long long)answers, kills, (unsigned long long)losses, (unsigned long long)changes);
    is_int((long long)failures, 0, "every other request is answered");
    ok((int)losses <= kills, "a worker that is killed costs the request that it ran at most");
    ok(answers > 100 && changes > 10, "many were, by whichever worker was free");
    ok(seen > 100 && torn == 0, "%llu request lines seen, %llu of them torn", (unsigned long long)seen,
       (unsigned long long)torn);
    site_drain(&s);
    ok(site_ended(&s), "the edge ends");
    sr_counters sum;
    sr_scoreboard_totals(s.board, &sum);
    uint64_t closed = 0;
    for (int i = 0; i < SR_CLOSED_REASONS; i++)
        closed += sum.closed[i];
    is_int((long long)closed, (long long)sum.accepted, "each connection was closed once");
    site_close(&s);
    return done_testing();
}
