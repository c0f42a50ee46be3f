#ifndef SR_SLEEPERS_H
#define SR_SLEEPERS_H
/*
 * sleepers: which workers sleep, which are awake and look for a request, and how one is woken; and which edges there are.
 *
 * One bit a row in two sets, and a futex a row. Of the sleepers the lowest is woken first, so that few workers stay warm
 * when few suffice. Who looks is a set and not a count: a worker that is killed while it looks leaves a bit that
 * sr_sleepers_forget takes away, not a number that nobody can set right.
 *
 * An edge that is ready says so by the name of its lobby (door.h), at the place of its number: 0, none is there. Each change is
 * another epoch, after which workers look. All edges wake the same sleepers, so whichever has a request finds a worker.
 *
 * Memory: shared and writable by all workers and edges, made by the supervisor, always of SR_SLEEPERS_BYTES and sealed. What
 * it says is a hint about whom to wake, its numbers of rows among it: no value leads out of it. A worker that spoils it can
 * delay requests until the edge looks after them (queue.h), not lose them.
 * Process: a worker calls those with its row; any process wakes. No lock; a process may be killed at any instruction.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SR_SLEEPERS_ROWS = 8192, SR_SLEEPERS_WORDS = SR_SLEEPERS_ROWS / 64, SR_EDGES_MAX = 64 };

typedef struct sr_sleeper {
    _Alignas(
        64) _Atomic uint32_t word; /* another number after each wake-up: what the worker's futex waits on */
} sr_sleeper;

typedef struct sr_sleepers {
    _Atomic uint32_t rows, words; /* in use */
    _Atomic uint32_t epoch;       /* another number after an edge has come or gone */
    _Atomic uint32_t over;        /* the server is gone: nobody will bring a request any more */
    _Atomic uint64_t key;         /* that a hello must bring: who has it was started by the server */
    _Atomic uint64_t lobby[SR_EDGES_MAX];
    _Alignas(64) _Atomic uint64_t sleeping[SR_SLEEPERS_WORDS];
    _Alignas(64) _Atomic uint64_t searching[SR_SLEEPERS_WORDS];
    sr_sleeper row[SR_SLEEPERS_ROWS]; /* pages that nobody touches cost nothing */
} sr_sleepers;

enum { SR_SLEEPERS_BYTES = sizeof(sr_sleepers) };

/* Zeroed memory, or one whose rows were spoiled. rows <= SR_SLEEPERS_ROWS */
void sr_sleepers_init(sr_sleepers *s, uint32_t rows);

/* This edge is ready, and known by that name. Every worker is woken, to look. edge < SR_EDGES_MAX */
void sr_sleepers_arrive(sr_sleepers *s, uint32_t edge, uint64_t lobby);
/* It is gone, or brings no request any more. Returns whether another one is there. */
bool sr_sleepers_part(sr_sleepers *s, uint32_t edge);

/* The worker of that row is awake and looks for a request; it has found one. */
void sr_sleepers_search(sr_sleepers *s, uint32_t row);
void sr_sleepers_found(sr_sleepers *s, uint32_t row);

/*
 * To sleep: begin, look once more whether there is a request, then sleep or not, then end:
 *
 *     uint32_t word = sr_sleepers_begin(s, row);
 *     if (there is no request)
 *         sr_sleepers_sleep(s, row, word, ns);
 *     sr_sleepers_end(s, row);                      it looks for a request again
 *
 * Who puts a request and then looks for sleepers (both sequentially consistent) either sees this one, or is seen by
 * its second look. `word` is read by begin, so a wake-up in between is not lost.
 */
uint32_t sr_sleepers_begin(sr_sleepers *s, uint32_t row);
void sr_sleepers_sleep(sr_sleepers *s, uint32_t row, uint32_t word, int64_t ns); /* below 0: for ever */
void sr_sleepers_end(sr_sleepers *s, uint32_t row);

/* Wakes the lowest sleeper, which counts as one that looks from now on. False: nobody sleeps. */
bool sr_sleepers_wake_one(sr_sleepers *s);
/* Wakes this one, whatever it sleeps for. Async-signal-safe. */
void sr_sleepers_wake(sr_sleepers *s, uint32_t row);

/* The server is gone: everybody leaves. */
void sr_sleepers_end_all(sr_sleepers *s);

bool sr_sleepers_searching(const sr_sleepers *s); /* somebody looks for a request */
bool sr_sleepers_sleeping(const sr_sleepers *s);  /* somebody sleeps */

void sr_sleepers_forget(sr_sleepers *s, uint32_t row); /* its worker is gone */

#endif
