/* turn: what a worker counts around its requests, and what it says before it leaves */
#include "driver.h"
#include "tap.h"

enum { MIB = 1 << 20, BLOCK = 4 * MIB, BLOCKS_MAX = 1000 };

static site s;
static worker *w;
static client c;
static char *blocks[BLOCKS_MAX]; /* what the application has leaked */
static int n_blocks;

/* One request, whose application leaks as many blocks. SR_NEXT_SOON, SR_NEXT_DONE, 0, or -1: no answer */
static int request(int leak)
{
    sr_task task;
    sr_next what;
    int said = 0;
    client_get(&c, "/");
    while ((what = sr_engine_next(w->e, &task)) != SR_NEXT_REQUEST) {
        if (what == SR_NEXT_DONE)
            return SR_NEXT_DONE;
        if (what == SR_NEXT_SOON)
            said = what;
    }
    while (leak-- > 0 && n_blocks < BLOCKS_MAX) {
        blocks[n_blocks] = malloc(BLOCK);
        memset(blocks[n_blocks++], 1, BLOCK);
    }
    serve(w, &task);
    if (client_response(&c) != 200)
        return -1;
    if (c.closes) {
        client_close(&c);
        c = client_open(&s, 0);
    }
    return said;
}

static void begin(const sr_config *config)
{
    site_open(&s, config, 1);
    w = worker_new(&s, 0);
    c = client_open(&s, 0);
}

static void end(void)
{
    sr_task task;
    sr_engine_drain(w->e);
    client_close(&c);
    while (sr_engine_next(w->e, &task) != SR_NEXT_DONE)
        ;
    sr_engine_lend(w->e);
    sr_engine_free(w->e);
    w->e = NULL;
    site_close(&s);
    while (n_blocks)
        free(blocks[--n_blocks]);
}

static void rows(pid_t pid)
{
    for (uint32_t i = 1; i < s.board->slots; i++)
        atomic_store(&s.board->rows[i].pid, pid);
}

static void requests(uint64_t soon, uint64_t max)
{
    sr_config config = config_default();
    int said_after = 0, times = 0;
    config.soon_requests = soon;
    config.max_requests = max;
    begin(&config);
    rows(1);
    int said;
    for (int i = 0; i < 20 && (said = request(0)) != -1 && said != SR_NEXT_DONE; i++)
        if (said) {
            said_after = i;
            times++;
        }
    ok(times == 1 && said_after == (int)soon, "soon at %d, said once, after that one", (int)soon);
    ok(w->e->soon == SR_REASON_REQUESTS && !w->e->retiring, "no row for a successor: it goes on past %d",
       (int)max);
    rows(0);
    request(0);
    ok(w->e->retiring && w->e->reason == SR_REASON_REQUESTS, "then it retires");
    end();
}

static void at_once(void)
{
    sr_config config = config_default();
    config.soon_requests = config.max_requests = 3;
    begin(&config);
    int said = request(0) + request(0) + request(0);
    ok(w->e->retiring && !said, "soon and max are the same: it retires");
    ok(request(0) == SR_NEXT_DONE && !w->e->soon_said, "without saying so");
    end();

    config.soon_requests = config.max_requests = 0;
    begin(&config);
    for (int i = 0; i < 20; i++)
        said += request(0);
    ok(!said && !w->e->soon && !w->e->retiring, "no limits: nothing to say");
    ok(w->e->resident.fd < 0, "and no file is open for them");
    end();
}

static void memory(void)
{
    sr_config config = config_default();
    sr_resident r;
    sr_resident_open(&r);
    uint64_t before = sr_resident_bytes(&r);
    sr_resident_close(&r);
    config.max_rss = 2 * before + 64 * MIB;
    begin(&config);
    rows(1);
    int said = 0, n = 0;
    while (n < 900 && !(said = request(1)))
        n++;
    uint64_t soon = w->e->rss;
    ok(said == SR_NEXT_SOON && w->e->soon == SR_REASON_RSS, "leaks: soon, after %d requests", n);
    ok(soon > config.max_rss / 10 * 9, "at %.0f of %.0f MiB", (double)soon / MIB,
       (double)config.max_rss / MIB);
    said = n = 0;
    while (n++ < 900 && w->e->rss <= config.max_rss && !said)
        said = request(1);
    ok(said == 0 && w->e->rss > config.max_rss, "said once");
    ok(!w->e->retiring, "no row for a successor: it goes on past the limit");
    rows(0);
    request(0);
    request(0);
    ok(w->e->retiring && w->e->reason == SR_REASON_RSS, "then it retires");
    end();

    config.max_rss = 1;
    begin(&config);
    request(0);
    ok(!w->e->retiring, "a limit below what an empty process has");
    ok(request(0) == 0 && w->e->retiring && w->e->served == 2, "one request is served nevertheless");
    end();
}

/* The row's counters are those of all workers it had */
static void counters(void)
{
    sr_config config = config_default();
    begin(&config);
    sr_row *row = &s.board->rows[0];
    for (int i = 0; i < 3; i++)
        request(0);
    atomic_store(&row->tally.given, 5);
    atomic_store(&row->tally.taken, 6);
    sr_engine_drain(w->e);
    sr_task task;
    client_close(&c);
    while (sr_engine_next(w->e, &task) != SR_NEXT_DONE)
        ;
    sr_engine_lend(w->e);
    sr_engine_free(w->e);
    sr_scoreboard_release(s.board, 0);
    is_int((long long)row->tally.requests, 3, "three requests");
    w = worker_new(&s, 0);
    c = client_open(&s, 0);
    is_int((long long)row->tally.requests, 3, "a new worker does not forget them");
    request(0);
    is_int((long long)row->tally.requests, 4, "and adds its own");
    ok(row->tally.given == 5 && row->tally.taken == 6, "nor what was given and taken");
    end();
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    requests(1, 2);
    requests(3, 5);
    requests(9, 9);
    at_once();
    memory();
    counters();
    return done_testing();
}
