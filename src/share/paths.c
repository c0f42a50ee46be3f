#include "paths.h"

#include "../base/fnv.h"
#include "sequence.h"

#include <stdlib.h>

#define HALVES_NS INT64_C(300000000000) /* "of late": 300 s */

enum { TRIES = 8 }; /* of a reader, while paths take over rows */

static uint64_t load(const _Atomic uint64_t *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

static void store(_Atomic uint64_t *n, uint64_t value)
{
    atomic_store_explicit(n, value, memory_order_relaxed);
}

static uint64_t hash_of(uint64_t seed, const char *text, size_t len)
{
    return sr_fnv(seed ^ SR_FNV_START, text, len) | 1;
}

/*
 * The paths beside this one: of "/article/title" and "/article/title/\*" it is "/article/\*". Returns its
 * length; 0: there is none but all. `out` may be `text`.
 */
static size_t beside(const char *text, size_t len, char out[SR_FOLD_MAX])
{
    if (len > 2 && memcmp(text + len - 2, "/*", 2) == 0)
        len -= 2;
    len -= len > 1 && text[len - 1] == '/';
    while (len && text[len - 1] != '/')
        len--;
    if (len <= 1)
        return 0;
    memmove(out, text, len);
    out[len] = '*';
    return len + 1;
}

/* --- one row --- */

/* Whether it stands for its path. */
static bool certain(const sr_path_row *row)
{
    return load(&row->late) >= load(&row->inherited);
}

static uint64_t take(_Atomic uint64_t *n)
{
    uint64_t value = load(n);
    store(n, 0);
    return value;
}

/* Others may add to this at any moment. */
static uint64_t take_given(_Atomic uint64_t *n)
{
    return load(n) ? atomic_exchange(n, 0) : 0;
}

static void take_counts(sr_path_sum *out, sr_path_row *row)
{
    out->calls = take(&row->calls) + take_given(&row->given.calls);
    out->errors = take(&row->errors) + take_given(&row->given.errors);
    out->ns = take(&row->ns) + take_given(&row->given.ns);
    out->waited = take(&row->waited) + take_given(&row->given.waited);
}

static void add_counts(sr_path_row *to, const sr_path_sum *counts)
{
    sr_counters_add(&to->calls, counts->calls);
    sr_counters_add(&to->errors, counts->errors);
    sr_counters_add(&to->ns, counts->ns);
    sr_counters_add(&to->waited, counts->waited);
}

static void move_times(sr_path_row *to, sr_path_row *from)
{
    for (size_t i = 0; i < SR_HISTOGRAM_BUCKETS; i++)
        if (load(&from->times.buckets[i]))
            sr_counters_add(&to->times.buckets[i], take(&from->times.buckets[i]));
}

static void halve(sr_path_row *row, unsigned times)
{
    store(&row->late, load(&row->late) >> times);
    store(&row->inherited, load(&row->inherited) >> times);
    for (size_t i = 0; i < SR_HISTOGRAM_BUCKETS; i++)
        if (load(&row->times.buckets[i]))
            store(&row->times.buckets[i], load(&row->times.buckets[i]) >> times);
}

static void add(sr_path_row *row, const sr_path_call *call, uint64_t ns)
{
    sr_counters_add(&row->calls, call->units);
    if (call->failed)
        sr_counters_add(&row->errors, call->units);
    sr_counters_add(&row->ns, ns);
    sr_counters_add(&row->waited, call->waited_ns * call->units / SR_PATHS_UNIT);
    sr_counters_add(&row->times.buckets[sr_histogram_index(call->ns)], call->units);
}

/* --- the table --- */

/* An edge was killed while the row was taken over. */
static void give_up(sr_paths *shared, sr_path_row *row)
{
    sr_path_sum counts;
    take_counts(&counts, row);
    add_counts(&shared->other, &counts);
    move_times(&shared->other, row);
    sr_counters_add(&shared->other.late, take(&row->late));
    store(&row->inherited, 0);
    atomic_store_explicit(&row->len, 0, memory_order_relaxed);
}

void sr_paths_open(sr_path_index *index, sr_paths *tables, size_t n, size_t own, uint64_t seed)
{
    sr_paths *shared = tables + own;
    *index = (sr_path_index){.shared = shared, .tables = tables, .n = n, .seed = seed};
    if (!atomic_load_explicit(&shared->halved_at, memory_order_relaxed))
        return;
    uint32_t sequence = sr_sequence_begin(&shared->sequence);
    for (size_t i = 0; i < SR_PATHS_MAX; i++) {
        sr_path_row *row = &shared->rows[i];
        char text[SR_FOLD_MAX];
        uint32_t len = atomic_load_explicit(&row->len, memory_order_relaxed);
        if (!len)
            continue;
        if (len > SR_FOLD_MAX || sr_sequence_look(&row->sequence) & 1) {
            give_up(shared, row);
            continue;
        }
        sr_sequence_read(text, row->text, len);
        index->hashes[i] = hash_of(seed, text, len);
    }
    sr_sequence_end(&shared->sequence, sequence);
}

static void halve_all(sr_paths *shared, int64_t now)
{
    int64_t at = atomic_load_explicit(&shared->halved_at, memory_order_relaxed);
    if (at > now || at <= 0) {
        atomic_store_explicit(&shared->halved_at, now, memory_order_relaxed);
        return;
    }
    int64_t times = (now - at) / HALVES_NS;
    if (!times)
        return;
    for (size_t i = 0; i < SR_PATHS_MAX; i++)
        if (atomic_load_explicit(&shared->rows[i].len, memory_order_relaxed))
            halve(&shared->rows[i], times < 63 ? (unsigned)times : 63);
    halve(&shared->other, times < 63 ? (unsigned)times : 63);
    atomic_store_explicit(&shared->halved_at, at + times * HALVES_NS, memory_order_relaxed);
}

static size_t find(const sr_path_index *index, uint64_t hash)
{
    size_t i = 0;
    while (i < SR_PATHS_MAX && index->hashes[i] != hash)
        i++;
    return i;
}

/* A free row, or that with the least time of late but for `except`; of several, with the least time. */
static size_t cheapest(const sr_path_index *index, size_t except)
{
    uint64_t least = UINT64_MAX, least_ever = UINT64_MAX;
    size_t found = 0;
    for (size_t i = 0; i < SR_PATHS_MAX; i++) {
        const sr_path_row *row = &index->shared->rows[i];
        if (!index->hashes[i])
            return i;
        uint64_t ns = load(&row->late) + load(&row->inherited), ever = load(&row->ns);
        if (i == except)
            continue;
        if (ns < least || (ns == least && ever < least_ever)) {
            least = ns;
            least_ever = ever;
            found = i;
        }
    }
    return found;
}

static void name(sr_path_index *index, size_t i, const char *text, size_t len)
{
    sr_path_row *row = &index->shared->rows[i];
    char words[SR_FOLD_MAX] = {0};
    memcpy(words, text, len);
    sr_sequence_write(row->text, words, len);
    atomic_store_explicit(&row->len, (uint32_t)len, memory_order_relaxed);
    index->hashes[i] = hash_of(index->seed, text, len);
}

/* The text of a row; workers can write it. */
static size_t text_of(const sr_path_index *index, size_t i, char out[SR_FOLD_MAX])
{
    const sr_path_row *row = &index->shared->rows[i];
    uint32_t len = atomic_load_explicit(&row->len, memory_order_relaxed);
    if (len > SR_FOLD_MAX)
        return 0;
    sr_sequence_read(out, row->text, len);
    return len;
}

/* The row that stands for what is beside the path of another, or beside that; SR_PATHS_MAX: none. */
static size_t wider(const sr_path_index *index, size_t i)
{
    char text[SR_FOLD_MAX];
    size_t len = text_of(index, i, text), its;
    while ((len = beside(text, len, text)))
        if ((its = find(index, hash_of(index->seed, text, len))) < SR_PATHS_MAX)
            return its;
    return SR_PATHS_MAX;
}

/*
 * Where the calls count of a path that no row stands for: in the nearest row of what is beside it that stands
 * for that, or in `other`.
 */
static sr_path_row *home(const sr_path_index *index, size_t i)
{
    char text[SR_FOLD_MAX];
    size_t len = text_of(index, i, text);
    while ((len = beside(text, len, text))) {
        size_t its = find(index, hash_of(index->seed, text, len));
        if (its < SR_PATHS_MAX && certain(&index->shared->rows[its]))
            return &index->shared->rows[its];
    }
    return &index->shared->other;
}

/* The row of another edge that stands for the same path. NULL: there is none. */
static sr_path_row *twin(const sr_path_index *index, size_t i)
{
    char text[SR_FOLD_MAX], its[SR_FOLD_MAX];
    size_t len = text_of(index, i, text);
    for (size_t t = 0; t < index->n; t++) {
        sr_paths *table = &index->tables[t];
        if (table == index->shared || !atomic_load_explicit(&table->halved_at, memory_order_relaxed))
            continue;
        for (size_t j = 0; len && j < SR_PATHS_MAX; j++) {
            sr_path_row *row = &table->rows[j];
            uint32_t sequence = sr_sequence_look(&row->sequence);
            if (atomic_load_explicit(&row->len, memory_order_relaxed) != len || !certain(row))
                continue;
            sr_sequence_read(its, row->text, len);
            if (memcmp(its, text, len) == 0 && sr_sequence_holds(&row->sequence, sequence))
                return row;
        }
    }
    return NULL;
}

/*
 * The path leaves the row, and what it has counted goes where it is shown. If the row of another edge is
 * taken over at this instant, that gets it under its new path: nothing is lost.
 */
static void leave(sr_path_index *index, size_t i)
{
    sr_path_row *row = &index->shared->rows[i];
    sr_path_sum counts;
    take_counts(&counts, row);
    sr_path_row *to = counts.calls ? twin(index, i) : NULL;
    if (to) {
        atomic_fetch_add(&to->given.calls, counts.calls);
        atomic_fetch_add(&to->given.errors, counts.errors);
        atomic_fetch_add(&to->given.ns, counts.ns);
        atomic_fetch_add(&to->given.waited, counts.waited);
    } else {
        add_counts(home(index, i), &counts);
    }
    move_times(home(index, i), row);
}

/*
 * The row stands for what is beside its path from now on, unless another row does. It counts as new, or it
 * would be taken over before it gets anything.
 */
static bool widen(sr_path_index *index, size_t i)
{
    sr_path_row *row = &index->shared->rows[i];
    char text[SR_FOLD_MAX];
    size_t n = beside(text, text_of(index, i, text), text);
    if (!n || wider(index, i) < SR_PATHS_MAX)
        return false;
    uint32_t sequence = sr_sequence_begin(&row->sequence);
    leave(index, i);
    name(index, i, text, n);
    sr_counters_add(&row->inherited, load(&row->late));
    sr_sequence_end(&row->sequence, sequence);
    return true;
}

/* A row for a new path. */
static size_t begin(sr_path_index *index, const char *text, size_t len)
{
    uint32_t moving = sr_sequence_begin(&index->shared->sequence);
    size_t i = cheapest(index, SR_PATHS_MAX);
    if (index->hashes[i] && widen(index, i))
        i = cheapest(index, i);
    sr_path_row *row = &index->shared->rows[i];
    uint64_t inherits = 0;
    uint32_t sequence = sr_sequence_begin(&row->sequence);
    if (index->hashes[i]) {
        inherits = load(&row->late) + load(&row->inherited);
        size_t its = wider(index, i);
        sr_counters_add(its < SR_PATHS_MAX ? &index->shared->rows[its].late : &index->shared->other.late,
                        take(&row->late));
        leave(index, i);
    }
    store(&row->inherited, inherits);
    name(index, i, text, len);
    sr_sequence_end(&row->sequence, sequence);
    sr_sequence_end(&index->shared->sequence, moving);
    return i;
}

void sr_paths_add(sr_path_index *index, sr_bytes path, const sr_path_call *call, int64_t now)
{
    char text[SR_FOLD_MAX];
    size_t len = sr_fold(path, text), i = find(index, hash_of(index->seed, text, len));
    uint64_t ns = call->ns * call->units / SR_PATHS_UNIT;
    halve_all(index->shared, now);
    if (i == SR_PATHS_MAX)
        i = begin(index, text, len);
    sr_path_row *row = &index->shared->rows[i];
    sr_counters_add(&row->late, ns);
    add(certain(row) ? row : home(index, i), call, ns);
}

/* --- sums --- */

static void sum_up(sr_path_sum *to, const sr_path_sum *from)
{
    to->calls += from->calls;
    to->errors += from->errors;
    to->ns += from->ns;
    to->waited += from->waited;
    to->late += from->late;
    for (size_t i = 0; i < SR_HISTOGRAM_BUCKETS; i++)
        sr_counters_add(&to->times.buckets[i], load(&from->times.buckets[i]));
}

static void copy(sr_path_sum *out, const sr_path_row *row)
{
    *out = (sr_path_sum){.calls = load(&row->calls) + load(&row->given.calls),
                         .errors = load(&row->errors) + load(&row->given.errors),
                         .ns = load(&row->ns) + load(&row->given.ns),
                         .waited = load(&row->waited) + load(&row->given.waited),
                         .late = load(&row->late)};
    for (size_t i = 0; i < SR_HISTOGRAM_BUCKETS; i++)
        store(&out->times.buckets[i], load(&row->times.buckets[i]));
}

/* False: it is free. `stands`: for its path, and that was called since. */
static bool read_row(const sr_path_row *row, sr_path_sum *out, bool *stands)
{
    for (int i = 0; i < SR_SEQUENCE_TRIES; i++) {
        uint32_t sequence = sr_sequence_look(&row->sequence);
        uint32_t len = atomic_load_explicit(&row->len, memory_order_relaxed);
        if (!len)
            return false;
        if (len > SR_FOLD_MAX)
            continue;
        copy(out, row);
        *stands = out->late >= load(&row->inherited) && out->calls;
        sr_sequence_read(out->text, row->text, len);
        out->len = len;
        if (!sr_sequence_holds(&row->sequence, sequence))
            continue;
        for (uint32_t c = 0; c < len; c++) /* workers can write here */
            out->text[c] = out->text[c] > ' ' && out->text[c] < 0x7f ? out->text[c] : '?';
        return true;
    }
    return false;
}

static int most_first(const void *a, const void *b)
{
    const sr_path_sum *x = a, *y = b;
    if (x->late != y->late)
        return x->late < y->late ? 1 : -1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    size_t len = x->len < y->len ? x->len : y->len;
    int order = memcmp(x->text, y->text, len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* The sum for this path among the first n; n: there is none. */
static size_t sum_of(const sr_path_sum *all, size_t n, const char *text, size_t len)
{
    size_t i = 0;
    while (i < n && (all[i].len != len || memcmp(all[i].text, text, len) != 0))
        i++;
    return i;
}

/*
 * The time of a row that does not stand for its path is that of those beside it, if a row stands for these.
 * All else was counted there.
 */
static void add_uncertain(sr_path_sum *all, size_t n, const sr_path_sum *row, sr_path_sum *other)
{
    char text[SR_FOLD_MAX];
    size_t len = row->len, i = n;
    memcpy(text, row->text, len);
    while (i == n && (len = beside(text, len, text)))
        i = sum_of(all, n, text, len);
    sum_up(i < n ? &all[i] : other, row);
}

/* One look at all tables, into `all`, which has room for all rows; *used of them are paths. */
static void look(const sr_paths *tables, size_t n, sr_path_sum *all, size_t *used, sr_path_sum *other)
{
    size_t room = n * SR_PATHS_MAX, rest = room;
    sr_path_sum row;
    *used = 0;
    *other = (sr_path_sum){.len = 0};
    for (size_t t = 0; t < n; t++) {
        if (!atomic_load_explicit(&tables[t].halved_at, memory_order_relaxed))
            continue; /* it takes no memory */
        for (size_t i = 0; i < SR_PATHS_MAX; i++) {
            bool stands = false;
            if (!read_row(&tables[t].rows[i], &row, &stands))
                continue;
            size_t its = stands ? sum_of(all, *used, row.text, row.len) : --rest;
            if (its < *used) {
                sum_up(&all[its], &row);
            } else {
                all[its] = row;
                *used += stands;
            }
        }
        copy(&row, &tables[t].other);
        sum_up(other, &row);
    }
    for (size_t i = rest; i < room; i++)
        add_uncertain(all, *used, &all[i], other);
}

/* Changes whenever something moves in one of the tables. */
static uint64_t moves(const sr_paths *tables, size_t n)
{
    uint64_t sum = 0;
    for (size_t t = 0; t < n; t++)
        if (atomic_load_explicit(&tables[t].halved_at, memory_order_relaxed))
            sum += sr_sequence_look(&tables[t].sequence);
    return sum;
}

size_t sr_paths_sum(const sr_paths *tables, size_t n, sr_path_sum out[SR_PATHS_SHOWN_MAX + 1])
{
    size_t used = 0;
    sr_path_sum *all = malloc((n * SR_PATHS_MAX + 1) * sizeof *all), other;
    if (!all)
        return 0;
    for (int tries = 0; tries < TRIES; tries++) {
        uint64_t before = moves(tables, n);
        look(tables, n, all, &used, &other);
        atomic_thread_fence(memory_order_acquire);
        if (moves(tables, n) == before)
            break;
    }
    if (used)
        qsort(all, used, sizeof *all, most_first);
    memcpy(out, all, used * sizeof *all);
    out[used] = other;
    free(all);
    return used + 1;
}
