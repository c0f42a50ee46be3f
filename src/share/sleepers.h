#ifndef SR_SLEEPERS_H
#define SR_SLEEPERS_H
/*
 * sleepers: which workers sleep, which look for a request, how one is woken, and which edges there are.
 *
 * There are two sets with a bit for each row, and a futex for each row. The sleeper with the lowest row is
 * woken first, so that few workers stay warm when few suffice. Those that look are a set, not a count: a
 * worker that is killed while it looks leaves a bit, which sr_sleepers_forget clears, and not a number that
 * nobody could correct.
 *
 * An edge that is ready writes the name of its lobby (door.h) at the place of its number; 0: there is no
 * edge. Each change is a new epoch, which makes workers look at the names. All edges wake the same sleepers,
 * so whichever has a request finds a worker.
 *
 * Memory: made by the supervisor, writable by all workers and edges, always of SR_SLEEPERS_BYTES, and sealed.
 * Trust: what it says is a hint about whom to wake. No value in it is used as an index without a check. A
 * worker that spoils it can delay requests until the edge repairs it (src/edge/mend.c), but not lose them.
 * Process: a worker calls the functions with its own row; any process may wake. No lock; a process may be
 * killed at any instruction.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SR_SLEEPERS_ROWS = 8192, SR_SLEEPERS_WORDS = SR_SLEEPERS_ROWS / 64, SR_EDGES_MAX = 64 };

typedef struct sr_sleeper {
    _Alignas(64) _Atomic uint32_t word; /* the futex that the worker sleeps on; changes with each wake-up */
} sr_sleeper;

typedef struct sr_sleepers {
    _Atomic uint32_t rows, words; /* in use; a word has the bits of 64 rows */
    _Atomic uint32_t epoch;       /* changes when an edge has come or gone */
    _Atomic uint32_t over;        /* the server is gone: no request will ever come */
    _Atomic uint32_t held;        /* workers of generations below this one begin no request any more */
    _Atomic uint64_t key; /* must be in each hello: only processes that the server has started have it */
    _Atomic uint64_t lobby[SR_EDGES_MAX];
    _Alignas(64) _Atomic uint64_t sleeping[SR_SLEEPERS_WORDS];
    _Alignas(64) _Atomic uint64_t searching[SR_SLEEPERS_WORDS];
    sr_sleeper row[SR_SLEEPERS_ROWS]; /* pages that nobody touches cost nothing */
} sr_sleepers;

enum { SR_SLEEPERS_BYTES = sizeof(sr_sleepers) };

/* Initialises zeroed memory, or repairs `rows` and `words`. rows <= SR_SLEEPERS_ROWS */
void sr_sleepers_init(sr_sleepers *s, uint32_t rows);

/* The edge is ready, and its lobby has that name. Wakes every worker. edge < SR_EDGES_MAX */
void sr_sleepers_arrive(sr_sleepers *s, uint32_t edge, uint64_t lobby);

/* The edge is gone, or will bring no more requests. Returns whether there is another edge. */
bool sr_sleepers_part(sr_sleepers *s, uint32_t edge);

/* The worker of the row is awake and looks for a request; or it has found one. */
void sr_sleepers_search(sr_sleepers *s, uint32_t row);
void sr_sleepers_found(sr_sleepers *s, uint32_t row);

/*
 * To sleep: begin, look once more for a request, sleep if there is none, then end:
 *
 *     uint32_t word = sr_sleepers_begin(s, row);
 *     if (there is no request)
 *         sr_sleepers_sleep(s, row, word, ns);
 *     sr_sleepers_end(s, row);                      the worker looks for a request again
 *
 * A process that enqueues a request and then looks for sleepers (both sequentially consistent) either finds
 * this worker, or this worker finds the request when it looks again. `word` was read by begin, so a wake-up
 * in between is not lost.
 */
uint32_t sr_sleepers_begin(sr_sleepers *s, uint32_t row);
/* For at most ns, below 0: for ever. False: all of that time has passed */
bool sr_sleepers_sleep(sr_sleepers *s, uint32_t row, uint32_t word, int64_t ns);
void sr_sleepers_end(sr_sleepers *s, uint32_t row);

/* Wakes the sleeper with the lowest row, which from now on counts as one that looks. False: nobody sleeps. */
bool sr_sleepers_wake_one(sr_sleepers *s);

/* Wakes the worker of this row, whatever it sleeps for. Async-signal-safe. */
void sr_sleepers_wake(sr_sleepers *s, uint32_t row);

/* The server is gone: wakes all workers, which end. */
void sr_sleepers_end_all(sr_sleepers *s);

/*
 * Workers of this generation, and of those before, leave: a request that one of them takes from now on is
 * left for others. Who sleeps is not woken.
 */
void sr_sleepers_hold(sr_sleepers *s, uint32_t generation);
bool sr_sleepers_holds(const sr_sleepers *s, uint32_t generation);

bool sr_sleepers_searching(const sr_sleepers *s); /* some worker looks for a request */
bool sr_sleepers_sleeping(const sr_sleepers *s);  /* some worker sleeps */

/* The worker of the row is gone: clears its bits. */
void sr_sleepers_forget(sr_sleepers *s, uint32_t row);

#endif
