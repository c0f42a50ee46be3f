#include "sleepers.h"

#include "futex.h"

static uint64_t bit_of(uint32_t row)
{
    return UINT64_C(1) << (row % 64);
}

static void set(_Atomic uint64_t *words, uint32_t row)
{
    atomic_fetch_or(&words[row / 64], bit_of(row));
}

static void clear(_Atomic uint64_t *words, uint32_t row)
{
    atomic_fetch_and(&words[row / 64], ~bit_of(row));
}

static uint32_t words_of(const sr_sleepers *s)
{
    uint32_t words = atomic_load_explicit(&s->words, memory_order_relaxed);
    return words < SR_SLEEPERS_WORDS ? words : SR_SLEEPERS_WORDS;
}

static bool any(const sr_sleepers *s, const _Atomic uint64_t *words)
{
    for (uint32_t w = 0, n = words_of(s); w < n; w++)
        if (atomic_load(&words[w]))
            return true;
    return false;
}

void sr_sleepers_init(sr_sleepers *s, uint32_t rows)
{
    atomic_store(&s->rows, rows);
    atomic_store(&s->words, (rows + 63) / 64);
}

static void look(sr_sleepers *s)
{
    atomic_fetch_add(&s->epoch, 1);
    for (uint32_t row = 0; row < s->rows && row < SR_SLEEPERS_ROWS; row++)
        sr_sleepers_wake(s, row);
}

void sr_sleepers_arrive(sr_sleepers *s, uint32_t edge, uint64_t lobby)
{
    atomic_store(&s->lobby[edge], lobby);
    look(s);
}

bool sr_sleepers_part(sr_sleepers *s, uint32_t edge)
{
    bool more = false;
    atomic_store(&s->lobby[edge], 0);
    for (uint32_t i = 0; i < SR_EDGES_MAX; i++)
        more = more || atomic_load(&s->lobby[i]);
    look(s);
    return more;
}

void sr_sleepers_search(sr_sleepers *s, uint32_t row)
{
    set(s->searching, row);
}

void sr_sleepers_found(sr_sleepers *s, uint32_t row)
{
    clear(s->searching, row);
}

uint32_t sr_sleepers_begin(sr_sleepers *s, uint32_t row)
{
    uint32_t word = atomic_load(&s->row[row].word);
    clear(s->searching, row);
    set(s->sleeping, row);
    return word;
}

bool sr_sleepers_sleep(sr_sleepers *s, uint32_t row, uint32_t word, int64_t ns)
{
    return sr_futex_wait(&s->row[row].word, word, ns);
}

void sr_sleepers_end(sr_sleepers *s, uint32_t row)
{
    clear(s->sleeping, row);
    set(s->searching, row);
}

void sr_sleepers_wake(sr_sleepers *s, uint32_t row)
{
    atomic_fetch_add(&s->row[row].word, 1);
    sr_futex_wake(&s->row[row].word);
}

bool sr_sleepers_wake_one(sr_sleepers *s)
{
    for (uint32_t w = 0, n = words_of(s); w < n; w++) {
        uint64_t now = atomic_load(&s->sleeping[w]);
        while (now) {
            uint64_t lowest = now & -now;
            if (!atomic_compare_exchange_weak(&s->sleeping[w], &now, now & ~lowest))
                continue;
            uint32_t row = w * 64 + (uint32_t)__builtin_ctzll(lowest);
            if (row >= s->rows) /* this bit is nobody's: the memory is spoiled */
                continue;
            set(s->searching, row);
            sr_sleepers_wake(s, row);
            return true;
        }
    }
    return false;
}

void sr_sleepers_hold(sr_sleepers *s, uint32_t generation)
{
    atomic_store(&s->held, generation + 1);
}

bool sr_sleepers_holds(const sr_sleepers *s, uint32_t generation)
{
    return atomic_load(&s->held) > generation;
}

void sr_sleepers_end_all(sr_sleepers *s)
{
    atomic_store(&s->over, 1);
    for (uint32_t row = 0; row < s->rows && row < SR_SLEEPERS_ROWS; row++)
        sr_sleepers_wake(s, row);
}

bool sr_sleepers_searching(const sr_sleepers *s)
{
    return any(s, s->searching);
}

bool sr_sleepers_sleeping(const sr_sleepers *s)
{
    return any(s, s->sleeping);
}

void sr_sleepers_forget(sr_sleepers *s, uint32_t row)
{
    clear(s->sleeping, row);
    clear(s->searching, row);
}
