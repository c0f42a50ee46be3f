/* sleepers: who is woken, and that no wake-up is lost */
#include "share/sleepers.h"

#include "tap.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 130, ROUNDS = 100000 };

static sr_sleepers *s;

static void lowest_first(void)
{
    ok(!sr_sleepers_wake_one(s), "nobody sleeps");
    sr_sleepers_begin(s, 129);
    sr_sleepers_begin(s, 70);
    sr_sleepers_begin(s, 3);
    ok(sr_sleepers_sleeping(s) && !sr_sleepers_searching(s), "three sleep");
    uint32_t word = atomic_load(&s->row[3].word);
    ok(sr_sleepers_wake_one(s) && atomic_load(&s->row[3].word) != word, "the lowest is woken");
    ok(sr_sleepers_searching(s), "and counts as one that looks");
    sr_sleepers_found(s, 3);
    ok(!sr_sleepers_searching(s), "until it has found something");
    word = atomic_load(&s->row[70].word);
    ok(sr_sleepers_wake_one(s) && atomic_load(&s->row[70].word) != word, "then the next");
    sr_sleepers_forget(s, 70);
    ok(!sr_sleepers_searching(s), "one that has died looks for nothing");
    sr_sleepers_forget(s, 129);
    ok(!sr_sleepers_sleeping(s) && !sr_sleepers_wake_one(s), "and does not sleep");
    atomic_store(&s->sleeping[2], UINT64_C(1) << 60);
    ok(!sr_sleepers_wake_one(s), "a bit of a row that there is not wakes nobody");
    atomic_store(&s->sleeping[2], 0);
    atomic_store(&s->words, UINT32_MAX);
    atomic_store(&s->rows, UINT32_MAX);
    ok(!sr_sleepers_sleeping(s) && !sr_sleepers_wake_one(s), "numbers that are spoiled lead nowhere");
    sr_sleepers_init(s, ROWS);
    sr_sleepers_end(s, 0);
    sr_sleepers_found(s, 0);
}

static void edges(void)
{
    uint32_t epoch = atomic_load(&s->epoch), word = atomic_load(&s->row[ROWS - 1].word);
    sr_sleepers_arrive(s, 3, 77);
    ok(atomic_load(&s->lobby[3]) == 77 && atomic_load(&s->epoch) != epoch, "an edge arrives");
    ok(atomic_load(&s->row[0].word) && atomic_load(&s->row[ROWS - 1].word) != word, "and everybody looks");
    sr_sleepers_arrive(s, SR_EDGES_MAX - 1, 78);
    epoch = atomic_load(&s->epoch);
    word = atomic_load(&s->row[7].word);
    ok(sr_sleepers_part(s, 3), "one parts, and another is left");
    ok(!atomic_load(&s->lobby[3]) && atomic_load(&s->epoch) != epoch && atomic_load(&s->row[7].word) != word,
       "everybody looks again");
    ok(!sr_sleepers_part(s, SR_EDGES_MAX - 1), "none is left");
    atomic_store(&s->rows, UINT32_MAX);
    sr_sleepers_arrive(s, 0, 79);
    ok(!sr_sleepers_part(s, 0), "numbers of rows that are spoiled lead nowhere");
    sr_sleepers_init(s, ROWS);
}

/* Work is a counter: it grows, then a sleeper is woken. A lost wake-up would stop both for ever. */
static void none_is_lost(void)
{
    _Atomic uint32_t *work = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (uint32_t done = 0; done < ROUNDS;) {
            if (atomic_load(&work[0]) > done) {
                sr_sleepers_found(s, 5);
                atomic_store(&work[64], ++done);
                sr_sleepers_search(s, 5);
                continue;
            }
            uint32_t word = sr_sleepers_begin(s, 5);
            if (atomic_load(&work[0]) == done)
                sr_sleepers_sleep(s, 5, word, -1);
            sr_sleepers_end(s, 5);
        }
        _exit(0);
    }
    alarm(60);
    for (uint32_t n = 1; n <= ROUNDS; n++) {
        atomic_store(&work[0], n);
        if (!sr_sleepers_searching(s))
            sr_sleepers_wake_one(s);
        while (atomic_load(&work[64]) < n)
            ;
    }
    alarm(0);
    int status;
    waitpid(child, &status, 0);
    is_int(status, 0, "100,000 rounds of sleeping and waking");
}

int main(void)
{
    s = mmap(NULL, SR_SLEEPERS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sr_sleepers_init(s, ROWS);
    lowest_first();
    edges();
    none_is_lost();
    return done_testing();
}
