/* paths: the table of paths, who is in it, and that its sums stay true. */
#include "share/paths.h"

#include "tap.h"

#include <pthread.h>
#include <stdlib.h>

#define SECOND INT64_C(1000000000)

static sr_paths tables[2];
static sr_path_index edge, beside;
static sr_path_sum sums[SR_PATHS_SHOWN_MAX + 1];
static int64_t now = SECOND;

static void begin(void)
{
    memset(tables, 0, sizeof tables);
    sr_paths_open(&edge, tables, 2, 0, 7);
    sr_paths_open(&beside, tables, 2, 1, 8);
}

static void call_in(sr_path_index *in, const char *path, double ms, uint64_t units, bool failed)
{
    sr_path_call call = {.ns = (uint64_t)(ms * 1e6), .waited_ns = 2000000, .units = units, .failed = failed};
    sr_paths_add(in, sr_bytes_of(path, strlen(path)), &call, now);
}

static void call_units(const char *path, double ms, uint64_t units, bool failed)
{
    call_in(&edge, path, ms, units, failed);
}

static void call(const char *path, double ms)
{
    call_in(&edge, path, ms, SR_PATHS_UNIT, false);
}

/* The sum for a path; "": of the others. NULL: it is not shown. */
static const sr_path_sum *of(const char *path)
{
    size_t n = sr_paths_sum(tables, 2, sums);
    for (size_t i = 0; i < n; i++)
        if (sums[i].len == strlen(path) && memcmp(sums[i].text, path, sums[i].len) == 0)
            return &sums[i];
    return NULL;
}

static double total_ms(void)
{
    double ms = 0;
    size_t n = sr_paths_sum(tables, 2, sums);
    for (size_t i = 0; i < n; i++)
        ms += (double)sums[i].ns / 1e6;
    return ms;
}

static void counts(void)
{
    begin();
    is_int((long long)sr_paths_sum(tables, 2, sums), 1, "of nothing: the others");
    call("/user/1", 3);
    call("/user/2?", 5);
    call("/user/2", 5);
    call_units("/user/3", 7, SR_PATHS_UNIT, true);
    call_units("/cheap", 0.5, 20 * SR_PATHS_UNIT + SR_PATHS_UNIT / 2, false);
    const sr_path_sum *s = of("/user/:id");
    ok(s && s->calls == 3 * SR_PATHS_UNIT && s->errors == SR_PATHS_UNIT, "three calls, one has failed");
    ok(s && s->ns == 15000000 && s->waited == 6000000 && s->late == s->ns, "and their times");
    ok(s && sr_histogram_quantile(&s->times, 0.5) > 4e6 && sr_histogram_quantile(&s->times, 0.5) < 6e6,
       "half of them took no more than 5 ms");
    s = of("/cheap");
    ok(s && s->calls == 20 * SR_PATHS_UNIT + SR_PATHS_UNIT / 2 && s->ns == 10250000 && s->waited == 41000000,
       "a call that stands for several");
    sr_paths_sum(tables, 2, sums);
    ok(memcmp(sums[0].text, "/user/:id", 9) == 0, "the most time first");

    call_in(&beside, "/user/4", 1, SR_PATHS_UNIT, false);
    ok(of("/user/:id") && of("/user/:id")->calls == 4 * SR_PATHS_UNIT, "edges add up");
    sr_paths_open(&edge, tables, 2, 0, 9);
    call("/user/5", 1);
    ok(of("/user/:id")->calls == 5 * SR_PATHS_UNIT && of("/user/:id")->ns == 17000000,
       "another edge in the same place goes on");
}

/* A hundred thousand invented paths: the table is as large, and what takes time stays in it */
static void hostile(void)
{
    char path[64];
    double spent = 0;
    begin();
    for (int i = 0; i < 100000; i++) {
        snprintf(path, sizeof path, "/invented-%c%c-%c", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i / 676 % 26);
        path[16] = '\0';
        if (i % 26 == 0)
            snprintf(path + 13, sizeof path - 13, "x%cy%c%c", 'a' + i % 17, 'a' + i % 13, 'a' + i % 11);
        call(path, 1);
        spent += 1;
        if (i % 10 == 0) {
            call("/checkout", 2); /* a sixth of the time */
            call("/search", 0.5);
            spent += 2.5;
        }
    }
    const sr_path_sum *checkout = of("/checkout"), *search = of("/search");
    ok(checkout && checkout->calls == 10000 * SR_PATHS_UNIT && checkout->ns == 20000000000,
       "a path that takes time is in the table for all of it");
    ok(search && search->calls >= 9900 * SR_PATHS_UNIT, "and one that takes a twenty-fifth");
    sr_paths_sum(tables, 2, sums);
    ok(memcmp(sums[0].text, "/checkout", 9) == 0, "the first is the first");
    size_t n = sr_paths_sum(tables, 2, sums);
    ok(n <= SR_PATHS_MAX + 1, "no more paths than rows");
    int invented = 0;
    for (size_t i = 0; i < n; i++)
        invented += sums[i].len > 10 && memcmp(sums[i].text, "/invented-", 10) == 0;
    if (!ok(invented < 10, "hardly any invented path is shown"))
        printf("# %d of %zu\n", invented, n);
    if (!ok(total_ms() > spent - 0.5 && total_ms() < spent + 0.5, "the sum of all is true"))
        printf("# %f of %f\n", total_ms(), spent);
    bool used = true;
    for (int i = 0; i < SR_PATHS_MAX; i++)
        used = used && edge.hashes[i];
    ok(used, "all rows are in use");
}

/* Invented paths of several segments */
static void hostile_folders(void)
{
    char path[64];
    begin();
    for (int i = 0; i < 50000; i++) {
        snprintf(path, sizeof path, "/%c%c%c/x%c/y%c", 'a' + i % 26, 'a' + i / 26 % 26, 'a' + i % 17,
                 'a' + i % 11, 'a' + i % 7);
        call(path, 1);
        if (i % 20 == 0) {
            call("/shop/basket", 1); /* a twenty-first of the time */
            call("/shop/item/7", 1);
        }
    }
    ok(of("/shop/basket") && of("/shop/basket")->calls == 2500 * SR_PATHS_UNIT && of("/shop/item/:id") &&
           of("/shop/item/:id")->calls == 2500 * SR_PATHS_UNIT,
       "invented folders push out neither");
    if (!ok(total_ms() > 54999 && total_ms() < 55001, "and the sum is true"))
        printf("# %f\n", total_ms());
}

/* Titles that differ in each request, and take little time each */
static void titles(void)
{
    char path[64];
    begin();
    for (int i = 0; i < 20000; i++) {
        snprintf(path, sizeof path, "/article/on-%c%c%c", 'a' + i % 26, 'a' + i * 7 % 23, 'a' + i % 19);
        call(path, 1);
        if (i % 5 == 0) {
            snprintf(path, sizeof path, "/shop/%c%c-things/%c%c", 'a' + i % 26, 'a' + i % 17, 'a' + i % 11,
                     'a' + i % 23);
            call(path, 1);
            call("/login", 1);
        }
    }
    const sr_path_sum *s = of("/article/*");
    ok(s && s->ns > 19800 * UINT64_C(1000000) && s->calls > 19800 * SR_PATHS_UNIT, "are a row in the end");
    s = of("/login");
    ok(s && s->calls == 4000 * SR_PATHS_UNIT, "beside a path of its own");
    s = of("/shop/*");
    ok(s && s->ns > 3500 * UINT64_C(1000000), "so are those of two segments");
    if (!ok(total_ms() > 27999 && total_ms() < 28001, "the sum is true"))
        printf("# %f\n", total_ms());
    size_t n = sr_paths_sum(tables, 2, sums);
    ok(sums[n - 1].ns < 500 * UINT64_C(1000000), "hardly anything is left for others");
    sr_path_index next;
    sr_paths_open(&next, tables, 2, 0, 99);
    edge = next;
    call("/article/one-more", 1);
    call("/login", 1);
    ok(of("/login")->calls == 4001 * SR_PATHS_UNIT && total_ms() > 28001, "another edge goes on with it");
}

static void of_late(void)
{
    char path[32];
    begin();
    for (int i = 0; i < SR_PATHS_MAX; i++) {
        snprintf(path, sizeof path, "/old-%c%c", 'a' + i / 26, 'a' + i % 26);
        call(path, 1000);
    }
    call("/new", 30);
    ok(!of("/new") && of("")->ns == 1030000000, "a new path has to take more than it has inherited");
    now += 300 * 5 * SECOND;
    call("/new", 32);
    ok(of("/new") && of("/new")->ns == 32000000, "which is less after a while");
    is_int((long long)of("")->ns, 1030000000, "what it has taken before stays with the others");
    ok(of("/old-bb") && of("/old-bb")->ns == 1000000000 && of("/old-bb")->late < 32000000,
       "what was long ago does not decide about the order, but is not forgotten");
    sr_paths_sum(tables, 2, sums);
    ok(memcmp(sums[0].text, "/new", 4) == 0, "what takes time now is the first");
    now += 300 * 1000 * SECOND;
    call("/newer", 1);
    ok(of("/newer")->late == 1000000 && of("/old-ab")->late == 0 && !of("/new"),
       "after days all of that is over, and the least goes");
    now -= 300 * 1000 * SECOND;
    call("/newer", 1);
    ok(of("/newer")->ns == 2000000, "a clock that is behind harms nothing");
}

typedef struct seen {
    char text[SR_FOLD_MAX];
    uint32_t len;
    uint64_t calls, errors, ns, waited;
} seen;

/* Whether the sum of a path has fallen since the last look; of one that was missing then, no. */
static int fallen(void)
{
    static seen last[SR_PATHS_SHOWN_MAX + 1];
    static size_t n_last;
    size_t n = sr_paths_sum(tables, 2, sums);
    int fell = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n_last; j++)
            if (last[j].len == sums[i].len && memcmp(last[j].text, sums[i].text, sums[i].len) == 0)
                fell += sums[i].calls < last[j].calls || sums[i].errors < last[j].errors ||
                        sums[i].ns < last[j].ns || sums[i].waited < last[j].waited;
    for (size_t i = 0; i < n; i++) {
        last[i] = (seen){.len = sums[i].len,
                         .calls = sums[i].calls,
                         .errors = sums[i].errors,
                         .ns = sums[i].ns,
                         .waited = sums[i].waited};
        memcpy(last[i].text, sums[i].text, sums[i].len);
    }
    n_last = n;
    return fell;
}

/* Two edges, more paths than both have rows, of which some come and go, and edges that are replaced. */
static void only_grows(void)
{
    char path[64];
    int fell = 0, shared = 0;
    double spent = 0;
    uint64_t calls = 0;
    srandom(5);
    begin();
    fallen();
    for (int i = 0; i < 40000; i++) {
        long kind = random() % 100, x = random() % 80, y = random() % 3 + i / 4000 * 20;
        snprintf(path, sizeof path,
                 kind < 60   ? "/shop-%c%c/page"
                 : kind < 80 ? "/article/%c%c"
                             : "/%c%c",
                 'a' + (int)(kind < 60 ? x : y) / 26, 'a' + (int)(kind < 60 ? x : y) % 26);
        double ms = (double)(random() % 16) / 4;
        call_in(random() % 3 ? &edge : &beside, path, ms, SR_PATHS_UNIT, random() % 10 == 0);
        spent += ms;
        calls++;
        if (i % 5000 == 4999)
            sr_paths_open(i % 10000 < 5000 ? &edge : &beside, tables, 2, i % 10000 >= 5000, (uint64_t)i);
        if (i % 700 == 0)
            now += 100 * SECOND;
        if (i % 10 == 0)
            fell += fallen();
    }
    is_int(fell, 0, "no sum of a path, or of the others, ever falls");
    for (int i = 0; i < SR_PATHS_MAX; i++)
        shared += atomic_load(&tables[0].rows[i].given.calls) > 0;
    ok(shared, "an edge leaves what it has counted to another that knows the path");
    if (!ok(total_ms() > spent - 0.5 && total_ms() < spent + 0.5, "the sum of all is true"))
        printf("# %f of %f\n", total_ms(), spent);
    uint64_t units = 0;
    size_t n = sr_paths_sum(tables, 2, sums);
    for (size_t i = 0; i < n; i++)
        units += sums[i].calls;
    is_int((long long)(units / SR_PATHS_UNIT), (long long)calls, "and that of calls");
}

enum { CALLS = 20000 };

static _Atomic int running;

/* An edge that calls paths of which the other one has most, too. */
static void *calls_many(void *in)
{
    char path[64];
    for (unsigned i = 0, x = in == &edge ? 1 : 2; i < CALLS; i++) {
        x = x * 1103515245 + 12345;
        snprintf(path, sizeof path, "/%c%c/page", 'a' + (int)(x >> 16) % 20, 'a' + (int)(x >> 24) % 10);
        call_in(in, path, 1, SR_PATHS_UNIT, i % 10 == 0);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

/* Two edges and a reader at once, threads in the place of processes: for the thread sanitizer, too. */
static void at_once(void)
{
    pthread_t thread[2];
    bool sound = true;
    begin();
    atomic_store(&running, 2);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, calls_many, i ? &beside : &edge))
            exit(1);
    while (atomic_load(&running)) {
        size_t n = sr_paths_sum(tables, 2, sums);
        for (size_t i = 0; i + 1 < n; i++)
            sound = sound && sums[i].len && sums[i].len <= SR_FOLD_MAX && sums[i].text[0] == '/';
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    ok(sound, "a reader sees whole paths while two edges write");
    uint64_t units = 0, failed = 0;
    size_t n = sr_paths_sum(tables, 2, sums);
    for (size_t i = 0; i < n; i++) {
        units += sums[i].calls;
        failed += sums[i].errors;
    }
    is_int((long long)(units / SR_PATHS_UNIT), 2 * CALLS, "no call is lost or counted twice");
    is_int((long long)(failed / SR_PATHS_UNIT), 2 * CALLS / 10, "nor a failed one");
}

/* Workers can write the table: an edge and a reader survive whatever is there */
static void scribbled(void)
{
    srandom(3);
    bool sound = true;
    for (int i = 0; i < 300; i++) {
        unsigned char *bytes = (unsigned char *)tables;
        for (int j = 0; j < 20000; j++)
            bytes[(size_t)random() % sizeof tables] = (unsigned char)random();
        if (i % 3 == 0)
            sr_paths_open(&edge, tables, 2, 0, (uint64_t)i);
        call("/one", 1);
        call("/two", 20);
        size_t n = sr_paths_sum(tables, 2, sums);
        sound = sound && n >= 1 && n <= SR_PATHS_SHOWN_MAX + 1;
        for (size_t r = 0; r < n; r++) {
            sound = sound && sums[r].len <= SR_FOLD_MAX;
            for (uint32_t c = 0; c < sums[r].len; c++)
                sound = sound && sums[r].text[c] > ' ' && sums[r].text[c] < 0x7f;
        }
    }
    ok(sound, "lengths and characters are checked");
    for (int i = 0; i < SR_PATHS_MAX; i++) {
        tables[0].rows[i].len = 4;
        tables[0].rows[i].sequence = 1;
    }
    sr_paths_open(&edge, tables, 2, 0, 1);
    call("/again", 1);
    ok(edge.hashes[0] && !edge.hashes[1], "rows that an edge was killed in are given up");
}

int main(void)
{
    counts();
    hostile();
    hostile_folders();
    titles();
    of_late();
    only_grows();
    at_once();
    scribbled();
    return done_testing();
}
