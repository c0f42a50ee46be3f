#ifndef SR_PATHS_H
#define SR_PATHS_H
/*
 * paths: how much time of the application each path takes: a table for each place of an edge, in the
 * scoreboard. An edge that takes the place of another goes on with its table; readers add up the tables of
 * all.
 *
 * Paths are folded (http/fold.h). A table has SR_PATHS_MAX rows, whatever clients ask for. When it is full, a
 * new path takes over the row with the least time ("Space-Saving", Metwally and others, 2005): it inherits
 * that time as a handicap, so that the next new path does not find a row without any. So a path that takes
 * more than a 64th of the time is in the table for certain, and paths that somebody invents push out each
 * other.
 *
 * What a row has counted that is taken over goes to the row of its neighbours: after "/article/some-title"
 * that is "/article/" and a star, which the row with the least time becomes if there is none. So many titles
 * are one row in the end. Without such a row, as of paths of one segment, it goes to `other`. The sums stay
 * true.
 *
 * A row stands for its path once it has taken more time than it has inherited. Until then its calls count for
 * its neighbours or in `other`, and stay there: what is shown of a path never falls. For the same reason, a
 * row of which another edge has one too leaves there, in `given`, what it has counted.
 *
 * Who is in the table is decided by the time of late: that is halved every five minutes. Counts and times are
 * sums since the row stands for its path.
 *
 * Writer: one at a time, the edge, but for `given`. Reader: any process. Counters are atomic, relaxed; a path
 * is under a sequence lock, and what moves from one row to another under that of the table.
 * Trust: workers can write all of it, so the edge keeps the index for itself, and nothing here leads to an
 * address.
 */
#include "../http/fold.h"
#include "counters.h"

enum {
    SR_PATHS_MAX = 64,                                       /* rows of an edge */
    SR_PATHS_TABLES_MAX = 64,                                /* places of edges */
    SR_PATHS_SHOWN_MAX = SR_PATHS_MAX * SR_PATHS_TABLES_MAX, /* paths of all edges together */
    SR_PATHS_UNIT = 1024, /* calls are counted in 1024ths, as one may stand for several */
};

/*
 * What other edges have counted of the path, and have no row for any more. Any edge adds to it; the owner of
 * the row takes it away.
 */
typedef struct sr_path_given {
    _Atomic uint64_t calls, errors, ns, waited; /* as below */
} sr_path_given;

typedef struct sr_path_row {
    _Atomic uint32_t sequence; /* odd: the path is being written */
    _Atomic uint32_t len;      /* 0: the row is free */
    _Atomic uint64_t text[SR_FOLD_MAX / sizeof(uint64_t)];
    _Atomic uint64_t calls;     /* in units */
    _Atomic uint64_t errors;    /* of them with 5xx, or none at all, in units */
    _Atomic uint64_t ns;        /* in the application */
    _Atomic uint64_t waited;    /* ns that they have waited for a worker before */
    _Atomic uint64_t late;      /* ns in the application, of late */
    _Atomic uint64_t inherited; /* likewise, of the paths that the row was taken from */
    sr_histogram times;         /* of calls, of late, in units; without their sum */
    sr_path_given given;
} sr_path_row;

typedef struct sr_paths {
    _Atomic int64_t halved_at; /* monotonic ns; 0: nobody has used the table */
    _Atomic uint32_t sequence; /* odd: a row is being taken over */
    sr_path_row rows[SR_PATHS_MAX];
    sr_path_row other;
} sr_paths;

/* A call of the application that has ended. */
typedef struct sr_path_call {
    uint64_t ns, waited_ns;
    uint64_t units; /* for how many calls it stands: 1 is SR_PATHS_UNIT */
    bool failed;
} sr_path_call;

/* What the edge knows of its table. */
typedef struct sr_path_index {
    sr_paths *shared; /* NULL: there is none */
    sr_paths *tables; /* of all edges */
    size_t n;
    uint64_t seed;
    uint64_t hashes[SR_PATHS_MAX]; /* 0: the row is free */
} sr_path_index;

/*
 * In an edge that begins: goes on with what is in its table, `own` of those n. `seed` is random, so that
 * nobody can make two paths the same.
 */
void sr_paths_open(sr_path_index *index, sr_paths *tables, size_t n, size_t own, uint64_t seed);

/* A call has ended at `now`, monotonic ns. `path` as it came. */
void sr_paths_add(sr_path_index *index, sr_bytes path, const sr_path_call *call, int64_t now);

/* The sum of a path over edges; `len` 0: of all paths without a row. */
typedef struct sr_path_sum {
    char text[SR_FOLD_MAX];
    uint32_t len;
    uint64_t calls, errors; /* in units */
    uint64_t ns, waited, late;
    sr_histogram times;
} sr_path_sum;

/*
 * Adds up n tables, at most SR_PATHS_TABLES_MAX: `out` gets each path that a row stands for, those with the
 * most time of late first, and then one more for the others. Counts and times of all of them only grow, but
 * for a path that was missing meanwhile: it begins anew, as low as at 0. Returns how many, with that of the
 * others. 0: no memory.
 */
size_t sr_paths_sum(const sr_paths *tables, size_t n, sr_path_sum out[SR_PATHS_SHOWN_MAX + 1]);

#endif
