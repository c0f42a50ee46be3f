#ifndef SR_SCOREBOARD_H
#define SR_SCOREBOARD_H
/*
 * scoreboard: shared memory in which each worker and each edge says what it does. Made by the supervisor; each writes its own
 * row only; anybody reads. No lock and no system call: every field is atomic by itself, relaxed order, so a
 * reader sees each field whole, but not all fields of one instant. What is said of the present request has more bytes
 * than are atomic: a sequence lock says whether what was read is whole, and of one request.
 *
 * Behind the rows of the workers are those of the edges, which no worker can claim: they alone count connections.
 *
 * It outlives programs: the memory is a memfd, and a new generation, which is a new program, adopts it by its
 * descriptor. Who starts a new program leaves it open. The kernel frees the memory with the last process that has it.
 */
#include "../net/peer.h"
#include "counters.h"

#include <stdbool.h>

enum {
    SR_SLOTS_MAX = 8192,
    SR_EDGE_ROWS_MAX = 64,
    SR_LINE_MAX = 200,  /* bytes of a request line that others see */
    SR_MARK_MAX = 63,   /* and of what the application says of its request */
    SR_PLACE_MAX = 128, /* and of the name of a Perl file: the last ones */
    SR_NOTE_MAX = 8192, /* bytes of a note */
};

/* Why a worker has ended */
typedef enum sr_exit {
    SR_EXIT_STOP,     /* the server stops, or a new generation has taken over */
    SR_EXIT_FEWER,    /* the operator, or the load, wants less of them */
    SR_EXIT_REQUESTS, /* --max-reqs-per-child */
    SR_EXIT_RSS,      /* --max-rss */
    SR_EXIT_LIFETIME, /* --max-lifetime */
    SR_EXIT_HARAKIRI, /* the application has asked for it (psgix.harakiri.commit) */
    SR_EXIT_TIMEOUT,  /* its request ran for longer than --request-timeout */
    SR_EXIT_LOAD,     /* it, or one of its hooks, was not ready after --load-timeout */
    SR_EXIT_EXIT,     /* the application has called exit, with any status */
    SR_EXIT_CRASH,    /* a signal of a fault: SEGV, ABRT, BUS ... */
    SR_EXIT_OOM,      /* the kernel had no memory left */
    SR_EXIT_KILLED,   /* any other signal, from outside */
    SR_EXIT_LATE,     /* it did not end within --graceful-timeout, and was killed */
    SR_EXIT_CAUSES,
} sr_exit;

typedef enum sr_worker_state {
    SR_WORKER_FREE, /* no process has this row */
    SR_WORKER_STARTING,
    SR_WORKER_IDLE, /* waiting for events */
    SR_WORKER_BUSY, /* inside application code */
    SR_WORKER_DRAINING,
} sr_worker_state;

/* What the operator has said of the whole server */
typedef enum sr_stopping {
    SR_STOPPING_NO,
    SR_STOPPING_SOON, /* balancers are to find other servers: each response says close; all else goes on */
    SR_STOPPING_NOW,  /* nothing is given away any more */
} sr_stopping;

typedef struct sr_row {
    _Alignas(128) _Atomic uint32_t
        state;                    /* 128: two cache lines, adjacent-line prefetch would couple neighbours */
    _Atomic int32_t pid;          /* 0: free; -PID: of a worker that this process is about to fork */
    _Atomic uint32_t generation;  /* of the program that it runs; set by who claims the row */
    _Atomic uint64_t connections; /* open now */
    _Atomic uint64_t idle;        /* of them between two requests */
    _Atomic uint64_t waiting;     /* complete requests that wait in this worker */
    _Atomic int64_t since;        /* monotonic ns of the last change between idle and busy */
    _Atomic int64_t started;      /* of an edge: monotonic ns */
    _Atomic int64_t
        waiting_since; /* of an edge: monotonic ns at which the first that waits was complete; 0: none does */

    /* the last request, in cache lines of its own: they are written for each one */
    _Alignas(128) _Atomic uint32_t sequence; /* odd: being written */
    _Atomic uint32_t line_len;
    _Atomic uint32_t
        status; /* of the response of this request, or of the last: it is over; 0: not yet, or there was none */
    _Atomic uint64_t began; /* monotonic ns at which it was complete; 0: it is over */
    _Atomic uint64_t peer[sizeof(sr_peer) / sizeof(uint64_t)];
    _Atomic uint32_t mark_len;
    _Atomic uint32_t place_len;  /* 0: it has not been asked for, or not been told */
    _Atomic uint32_t place_line; /* where perl was when it was asked */
    _Atomic uint64_t line[SR_LINE_MAX / sizeof(uint64_t)]; /* method and target */
    _Atomic uint64_t mark[(SR_MARK_MAX + 1) / sizeof(uint64_t)];
    _Atomic uint64_t place[SR_PLACE_MAX / sizeof(uint64_t)];

    _Alignas(64) sr_counters counters; /* of all workers that had this row */
} sr_row;

/* What is told in more than a word, under a sequence lock. Of each one process is the writer */
typedef enum sr_note_of {
    SR_NOTE_SUPERVISOR, /* how its reloads go */
    SR_NOTE_ADMIN,      /* what the admin port has seen lately, for its successor */
    SR_NOTES,
} sr_note_of;

typedef struct sr_note {
    _Atomic uint32_t sequence; /* odd: being written */
    _Atomic uint32_t len;
    _Atomic uint64_t bytes[SR_NOTE_MAX / sizeof(uint64_t)];
} sr_note;

/* What a row says of its request, copied */
typedef struct sr_row_request {
    uint64_t began; /* 0: it is over, and has no mark any more; its line and peer stay */
    sr_peer peer;
    uint32_t line_len, mark_len;
    uint32_t status; /* of the one that is over */
    uint64_t line[SR_LINE_MAX / sizeof(uint64_t)];
    uint64_t mark[(SR_MARK_MAX + 1) / sizeof(uint64_t)]; /* UTF-8 without control characters */
} sr_row_request;

/*
 * What two builds must agree in to run beside each other, during an update: where the fields here are and what they
 * mean. Whoever changes the meaning or the place of one counts the first number up.
 */
enum { SR_SCOREBOARD_LAYOUT = 11 << 24 | sizeof(sr_row) };

typedef struct sr_scoreboard {
    uint32_t layout;           /* SR_SCOREBOARD_LAYOUT; the first field in any layout */
    uint32_t slots;            /* rows of workers */
    uint32_t edges;            /* and behind them, of edges */
    _Atomic uint32_t stopping; /* an sr_stopping, set by the supervisor */
    _Atomic uint32_t
        workers; /* how many the operator wants now (TTIN, TTOU); a new generation takes it over */
    _Atomic uint64_t exits[SR_EXIT_CAUSES];      /* of workers; counted by whoever has seen the end of one */
    _Atomic uint64_t edge_exits[SR_EXIT_CAUSES]; /* of edges; by the supervisor */
    sr_note notes[SR_NOTES];
    _Atomic uint32_t watched; /* the supervisor looks at the counts of trouble: no worker needs to wake it */
    _Atomic int32_t trouble_errno[SR_TROUBLES]; /* the last one of each; 0: none */
    _Atomic uint64_t longest_wait; /* ns that a request has waited for a worker, since the supervisor has
                                      taken it */
    size_t size;                   /* bytes mapped */
    int memfd;                     /* the same number in all processes */
    sr_row rows[];
} sr_scoreboard;

/* NULL with errno; 1 <= slots <= SR_SLOTS_MAX, edges <= SR_EDGE_ROWS_MAX */
sr_scoreboard *sr_scoreboard_new(uint32_t slots, uint32_t edges);
sr_scoreboard *sr_scoreboard_adopt(
    int memfd); /* NULL with errno; EINVAL: it is none, or of another layout. Sets FD_CLOEXEC on all */
void sr_scoreboard_free(sr_scoreboard *s); /* in this process only */
/*
 * In an edge, which has no bells: the memory, and its own row. Workers can write that memory, so an edge reads no numbers of
 * rows from it later. NULL with errno, as adopt. It stays mapped for the life of the process.
 */
sr_scoreboard *sr_scoreboard_map(int memfd, uint32_t edge, sr_row **row);

/* Complete requests that wait in all edges. */
uint64_t sr_scoreboard_waiting(const sr_scoreboard *s);

/* For a worker to be forked: the number of a free row, which is that worker's now; -1: there is no room. */
int32_t sr_scoreboard_claim(sr_scoreboard *s, uint32_t generation);
/*
 * By that worker, first of all: it has the row that `claimer` has claimed for it. False: that process is gone, its claim was
 * released, and the row may be another's.
 */
bool sr_scoreboard_occupy(sr_scoreboard *s, uint32_t slot, int32_t claimer);
/* Once its worker or edge is gone. Connections that it still had are counted as closed */
void sr_scoreboard_release(sr_scoreboard *s, uint32_t slot);

/* A request has waited for so long before it was served. Any process */
void sr_scoreboard_waited(sr_scoreboard *s, int64_t ns);

void sr_scoreboard_totals(const sr_scoreboard *s, sr_counters *sum); /* of all rows, into *sum */

/* A worker is gone, and why. Any process */
void sr_scoreboard_exited(sr_scoreboard *s, sr_exit why);
/* Likewise an edge; the supervisor */
void sr_scoreboard_edge_exited(sr_scoreboard *s, sr_exit why);

/* Replaces a note. Its one writer only. False: it is longer than SR_NOTE_MAX, and the one before stays */
bool sr_scoreboard_tell(sr_scoreboard *s, sr_note_of of, const char *text, size_t len);
/* Any process. Its bytes, in out[SR_NOTE_MAX]; 0: there is none, or the writer was killed in the middle of it */
size_t sr_scoreboard_told(const sr_scoreboard *s, sr_note_of of, char *out);

/*
 * The worker's Perl thread: this is its request now, complete since `began`, without a mark. The first SR_LINE_MAX bytes of
 * the line are kept. at[len, len + 7) can be read as well: behind the target of a request comes its version, and whole
 * words are copied faster.
 */
void sr_row_begin(sr_row *row, const char *at, size_t len, const sr_peer *peer, int64_t began);
void sr_row_end(sr_row *row); /* the same thread: it is over */
/*
 * The same thread: what the application says of it, UTF-8. As many whole characters are kept as fit into SR_MARK_MAX
 * bytes; what a terminal could take for an order becomes spaces.
 */
void sr_row_mark(sr_row *row, const char *at, size_t len);

/*
 * Where perl is when a signal interrupts it. The worker's Perl thread, in the handler of the signal: it only copies. Until the
 * place is asked for again, it stays.
 */
void sr_row_place_ask(sr_row *row); /* any other process, before it sends the signal */
void sr_row_place_tell(sr_row *row, const char *file, uint32_t line);
/* Any process. Bytes of the name in file[SR_PLACE_MAX]; 0: the handler has not run */
size_t sr_row_place(const sr_row *row, char *file, uint32_t *line);

/* Any process. False: it changed all the time, or the worker was killed while it wrote */
bool sr_row_read(const sr_row *row, sr_row_request *out);
/* The line for a log: what is not 0x20 to 0x7e becomes \xNN, what does not fit in whole is left out. Bytes written. */
size_t sr_row_text(const sr_row_request *request, char *out, size_t cap);

const char *sr_worker_state_name(uint32_t state); /* static */
const char *sr_exit_name(sr_exit why);            /* static: "max-requests" */

#endif
