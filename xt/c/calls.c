/* calls: the sample of short calls stands for all of them, and long ones count for themselves. */
#include "edge/calls.h"

#include "http1/head.h"
#include "tap.h"

#include <stdlib.h>

enum { SLOTS = 2 };

static sr_edge ed;
static sr_engine engine;
static sr_exchange exchange;
static sr_scoreboard board;
static sr_paths paths;
static sr_path_sum sums[SR_PATHS_SHOWN_MAX + 1];
static sr_entry entries[SLOTS];
static uint32_t slot;

static void put(const char *path)
{
    static const sr_request_limits limits = {.line = 6000, .head = 7000, .fields = 20};
    sr_slot *s = sr_queue_at(&ed.queue, slot);
    sr_request *r = (sr_request *)(void *)s->data;
    s->parse = offsetof(sr_request, fields) + 32;
    char head[1000];
    static sr_request parsed;
    size_t len = (size_t)snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    sr_request_init(&parsed);
    if (sr_request_feed(&parsed, &limits, head, len) != SR_PARSE_DONE)
        exit(9);
    memcpy(r, &parsed, s->parse);
    memcpy(s->data + s->parse, head, len);
    s->files = 0;
}

/* A call that took so long, and had waited for a millisecond. */
static void call(int64_t ns, uint32_t status)
{
    engine.now += 2000000;
    atomic_store(&sr_queue_at(&ed.queue, slot)->ready_at, engine.now);
    engine.now += 1000000;
    exchange.given_at = engine.now;
    exchange.status = status;
    engine.now += ns;
    sr_calls_ended(&ed, slot, &exchange, false);
}

static const sr_path_sum *of(const char *path)
{
    size_t n = sr_paths_sum(&paths, 1, sums);
    for (size_t i = 0; i < n; i++)
        if (sums[i].len == strlen(path) && memcmp(sums[i].text, path, sums[i].len) == 0)
            return &sums[i];
    static const sr_path_sum none = {.len = 0};
    return &none;
}

static bool near(const char *what, double got, double want, double share)
{
    bool good = got > want * (1 - share) && got < want * (1 + share);
    if (!good)
        printf("# %s: got %g, want %g\n", what, got, want);
    return good;
}

static void begin(void)
{
    memset(&paths, 0, sizeof paths);
    memset(&ed.calls, 0, sizeof ed.calls);
    sr_calls_open(&ed);
}

/* In turn, so that a sample of each 16th, say, would see one of them only */
static void unbiased(void)
{
    enum { N = 200000 };
    static const struct {
        const char *path;
        int64_t ns;
    } kinds[] = {{"/a", 0}, {"/b", 10000}, {"/c", 100000}, {"/d", 900000}};
    begin();
    for (int i = 0; i < N; i++) {
        put(kinds[i % 4].path);
        call(kinds[i % 4].ns, 200);
    }
    for (int k = 0; k < 4; k++) {
        const sr_path_sum *s = of(kinds[k].path);
        ok(near("calls", (double)s->calls / SR_PATHS_UNIT, N / 4, k < 3 ? 0.15 : 0.03) &&
               (!k || near("time", (double)s->ns, (double)kinds[k].ns * N / 4, 0.15)) &&
               near("waited", (double)s->waited, 1e6 * N / 4, 0.15),
           "%s: calls of %lld ns", kinds[k].path, (long long)kinds[k].ns);
    }
    /* a mean over many samples is closer: what is left is no bias */
    double calls = 0;
    put("/e");
    for (int run = 0; run < 20; run++) {
        begin();
        ed.calls.random += (uint64_t)run * UINT64_C(0x9e3779b97f4a7c15);
        for (int i = 0; i < N; i++)
            call(5000 + i % 7 * 3000, 200);
        calls += (double)of("/e")->calls / SR_PATHS_UNIT;
    }
    ok(near("calls", calls / 20, N, 0.01), "without a bias");
}

static void exact(void)
{
    begin();
    put("/slow/1");
    for (int i = 0; i < 100; i++)
        call(SR_CALLS_EACH_NS + i * 1000, 200);
    is_int((long long)of("/slow/:id")->calls, 100 * SR_PATHS_UNIT, "long calls count each");
    put("/few");
    engine.now += SR_SECOND;
    for (int i = 0; i < 300; i++) {
        call(20000, 200);
        engine.now += SR_SECOND / 40;
    }
    is_int((long long)of("/few")->calls, 300 * SR_PATHS_UNIT, "short ones as well while they are few");
    put("/bad");
    for (int i = 0; i < 100; i++)
        call(1000, 503);
    ok(of("/bad")->calls == 100 * SR_PATHS_UNIT && of("/bad")->errors == of("/bad")->calls,
       "and those that fail");
    put("/");
    engine.now += 5000000;
    exchange.status = 0;
    sr_calls_ended(&ed, slot, &exchange, true);
    ok(of("/")->calls == SR_PATHS_UNIT && of("/")->errors == SR_PATHS_UNIT,
       "a response that was cut is an error");
    exchange.given_at = 0;
    sr_calls_ended(&ed, slot, &exchange, true);
    is_int((long long)of("/")->calls, SR_PATHS_UNIT, "a request for which nobody was called is no call");
}

/* Without its client, or in a file */
static void without(void)
{
    begin();
    put("/gone");
    call(5000000, 200);
    entries[slot].exchange = NULL;
    sr_calls_ended(&ed, slot, NULL, false);
    is_int((long long)of("/gone")->calls, SR_PATHS_UNIT, "nobody knows when it began: it does not count");
    entries[slot].exchange = &exchange;

    sr_queue_at(&ed.queue, slot)->files = SR_FILE_REQUEST;
    call(5000000, 200);
    ok(of("...")->calls == SR_PATHS_UNIT, "a request whose path is not known");
    sr_buffer_add(&entries[slot].line, "POST /large/7?x=/y", 18);
    call(5000000, 200);
    ok(of("/large/:id")->calls == SR_PATHS_UNIT, "one in a file");
    sr_buffer_free(&entries[slot].line);

    engine.scoreboard = NULL;
    memset(&ed.calls, 0, sizeof ed.calls);
    sr_calls_open(&ed);
    put("/x");
    for (int i = 0; i < 1000; i++)
        call(i * 10000, i % 2 ? 200 : 500);
    ok(!of("/x")->calls, "an edge without a scoreboard counts nothing");
}

int main(void)
{
    if (sr_queue_new(&ed.queue, SLOTS, 1) || !sr_queue_slot(&ed.queue, &slot))
        return 9;
    ed.engine = &engine;
    ed.entries = entries;
    ed.slots = SLOTS;
    entries[slot].exchange = &exchange;
    engine.now = SR_SECOND;
    engine.nonce = 12345;
    engine.scoreboard = &board;
    board.paths = &paths;
    board.edges = 1;
    unbiased();
    exact();
    without();
    sr_queue_free(&ed.queue);
    return done_testing();
}
