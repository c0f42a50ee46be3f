#ifndef SR_SCOREBOARD_H
#define SR_SCOREBOARD_H
/*
 * scoreboard: shared memory in which each worker and each edge says what it does. The supervisor makes it. A
 * process writes its own row only; any process reads. There is no lock and no system call: each field is
 * atomic by itself, with relaxed order, so a reader sees each field whole, but not all fields at the same
 * instant. The request line and mark of a worker have more bytes than are atomic: a sequence lock tells the
 * reader whether what it has read is whole and of one request.
 *
 * After the rows of the workers are those of the edges, which no worker can claim. Only edges count
 * connections.
 *
 * Lifetime: it outlives programs. The memory is a memfd, and a new generation, which is a new program, adopts
 * it by its descriptor, so a process that executes a new program leaves that open. The kernel frees the
 * memory with the last process that has it.
 * Trust: workers can write all of it. An edge therefore reads no indices from it (sr_scoreboard_map).
 */
#include "../http/traced.h"
#include "../net/peer.h"
#include "counters.h"
#include "exceptions.h"
#include "lane.h"
#include "paths.h"

#include <stdbool.h>

enum {
    SR_SLOTS_MAX = 8192,
    SR_EDGE_ROWS_MAX = 64,
    SR_LINE_MAX = 200,  /* bytes of a request line */
    SR_MARK_MAX = 63,   /* bytes of what the application says about its request */
    SR_PLACE_MAX = 128, /* bytes of the name of a Perl file, the last ones */
    SR_NOTE_MAX = 8192, /* bytes of a note */
};

/* Why a worker, or an edge, has ended. */
typedef enum sr_exit {
    SR_EXIT_STOP,     /* the server stops, or a new generation has taken over */
    SR_EXIT_FEWER,    /* fewer workers are wanted */
    SR_EXIT_REQUESTS, /* --max-reqs-per-child */
    SR_EXIT_RSS,      /* --max-rss */
    SR_EXIT_LIFETIME, /* --max-lifetime */
    SR_EXIT_HARAKIRI, /* the application has asked for it (psgix.harakiri.commit) */
    SR_EXIT_TIMEOUT,  /* killed: its request took longer than --request-timeout */
    SR_EXIT_LOAD,     /* killed: it, or one of its hooks, was not ready after --load-timeout */
    SR_EXIT_EXIT,     /* the application has called exit, with any status */
    SR_EXIT_CRASH,    /* a signal of a fault: SEGV, ABRT, BUS ... */
    SR_EXIT_OOM,      /* killed by the kernel for lack of memory */
    SR_EXIT_KILLED,   /* any other signal, from outside */
    SR_EXIT_LATE,     /* killed: it did not end within --graceful-timeout */
    SR_EXIT_CAUSES,
} sr_exit;

typedef enum sr_worker_state {
    SR_WORKER_FREE,     /* no process has this row */
    SR_WORKER_STARTING, /* it was claimed, and its worker is not ready */
    SR_WORKER_IDLE,     /* a worker waits for a request, an edge for events */
    SR_WORKER_BUSY,     /* a worker runs the application, an edge handles events */
    SR_WORKER_DRAINING, /* it finishes what it has and ends */
} sr_worker_state;

/* Who looks at the counts of trouble (src/conn/trouble.h). */
typedef enum sr_watched {
    SR_WATCHED_NOT, /* nobody: there is nothing new */
    /* an edge has counted something, and the supervisor will look: nobody needs to wake it */
    SR_WATCHED_TROUBLE,
    SR_WATCHED_REST, /* a process that serves alone has something left to say: it looks now and then */
} sr_watched;

/* What the supervisor says about the whole server. */
typedef enum sr_stopping {
    SR_STOPPING_NO,
    SR_STOPPING_SOON, /* --drain-delay: each response says close, so that load balancers go elsewhere */
    SR_STOPPING_NOW,  /* the server ends: nothing is started or replaced any more */
} sr_stopping;

typedef struct sr_row {
    /* 128: two cache lines, since prefetching of adjacent lines would couple neighbours */
    _Alignas(128) _Atomic uint32_t state; /* sr_worker_state */
    _Atomic int32_t pid;          /* 0: free; -PID: claimed by that process for a worker to be forked */
    _Atomic uint32_t generation;  /* of the program that the worker runs; set by who claims the row */
    _Atomic uint64_t connections; /* of an edge: open now */
    _Atomic uint64_t idle;        /* of an edge: how many of them are between two requests */
    _Atomic uint64_t http2;       /* of an edge: connections that speak HTTP/2 */
    _Atomic uint64_t streams;     /* of an edge: requests of these that are not over */
    _Atomic uint64_t held[SR_HELD_KINDS]; /* of an edge: connections that it holds for the application */
    _Atomic uint64_t spooled;             /* of an edge: bytes of its temporary files */
    _Atomic uint64_t waiting;             /* of an edge: complete requests that wait for a worker */
    _Atomic int64_t since;                /* monotonic ns of the last change between idle and busy */
    _Atomic int64_t started;              /* of an edge: monotonic ns */
    _Atomic int64_t waiting_since; /* of an edge: monotonic ns at which the first was complete; 0: none */
    _Atomic int64_t hangs_since;   /* of an edge, by the supervisor: monotonic ns; 0: it goes on */

    /* the last request of a worker, in cache lines of its own, since they are written for each request */
    _Alignas(128) _Atomic uint32_t sequence; /* odd: being written */
    _Atomic uint32_t line_len;
    _Atomic uint32_t status; /* of its response, once it is over; 0: not yet, or there was none */
    _Atomic uint64_t began;  /* monotonic ns at which it was complete; 0: it is over */
    _Atomic uint64_t peer[sizeof(sr_peer) / sizeof(uint64_t)];
    _Atomic uint64_t nonce, number; /* of its id (http/traced.h) */
    _Atomic uint32_t mark_len;
    _Atomic uint32_t place_len;  /* 0: nobody has asked for the place, or the worker has not answered */
    _Atomic uint32_t place_line; /* where perl was when it was asked */
    _Atomic uint32_t has_failed; /* 1: there is something in its table of exceptions */
    _Atomic uint32_t named_len;
    _Atomic uint64_t named_number; /* of the request whose id `named` is: a trusted peer has set it */
    _Atomic uint64_t line[SR_LINE_MAX / sizeof(uint64_t)]; /* method and target */
    _Atomic uint64_t mark[(SR_MARK_MAX + 1) / sizeof(uint64_t)];
    _Atomic uint64_t place[SR_PLACE_MAX / sizeof(uint64_t)];
    _Atomic uint64_t named[SR_REQUEST_ID_MAX / sizeof(uint64_t)];

    _Alignas(64) sr_counters counters; /* of all processes that had this row */
} sr_row;

/* Texts of a whole process, each under a sequence lock and with one writer. */
typedef enum sr_note_of {
    SR_NOTE_SUPERVISOR, /* how its reloads went */
    SR_NOTE_ADMIN,      /* what the admin process has seen lately, for its successor */
    SR_NOTES,
} sr_note_of;

typedef struct sr_note {
    _Atomic uint32_t sequence; /* odd: being written */
    _Atomic uint32_t len;
    _Atomic uint64_t bytes[SR_NOTE_MAX / sizeof(uint64_t)];
} sr_note;

/* A copy of what a row says about its request. */
typedef struct sr_row_request {
    uint64_t began; /* 0: it is over, and its mark is gone; line and peer stay */
    sr_peer peer;
    uint32_t line_len, mark_len, named_len;
    uint32_t status; /* of the response, if it is over */
    uint64_t nonce, number;
    uint64_t line[SR_LINE_MAX / sizeof(uint64_t)];
    uint64_t mark[(SR_MARK_MAX + 1) / sizeof(uint64_t)]; /* UTF-8 without control characters */
    uint64_t named[SR_REQUEST_ID_MAX / sizeof(uint64_t)];
} sr_row_request;

/*
 * Two builds can run beside each other, during an update, if they agree in this number. Increase the first
 * part when the place or the meaning of a field changes; the second is of sizes.
 */
enum { SR_SCOREBOARD_LAYOUT = 28 << 24 | (sizeof(sr_row) + sizeof(sr_paths) + sizeof(sr_exceptions)) };

typedef struct sr_board {      /* the memory */
    uint32_t layout;           /* SR_SCOREBOARD_LAYOUT; the first field in every layout */
    uint32_t slots;            /* rows of workers */
    uint32_t edges;            /* rows of edges, after them */
    _Atomic uint32_t stopping; /* sr_stopping, set by the supervisor */
    _Atomic uint32_t workers;  /* how many workers the operator wants; a new generation takes it over */
    _Atomic uint64_t
        exits[SR_EXIT_CAUSES]; /* of workers; counted by the process that has seen the end of one */
    _Atomic uint64_t edge_exits[SR_EXIT_CAUSES]; /* of edges; counted by the supervisor */
    sr_note notes[SR_NOTES];
    _Atomic uint32_t watched;                   /* sr_watched */
    _Atomic int32_t trouble_errno[SR_TROUBLES]; /* the last errno of each; 0: none */
    /*
     * limits of all edges together, as the edge says that has started last; times in ns, 0: there is no limit
     */
    _Atomic uint64_t max_connections, max_queue, queue_ns, request_ns;
    sr_lane_row lanes[SR_EDGE_ROWS_MAX][SR_LANES_MAX]; /* of each edge */
    _Atomic uint64_t longest_wait; /* ns that a request has waited, since the supervisor has read it */
    size_t size;                   /* bytes mapped */
    int memfd;                     /* has the same number in all processes */
    sr_row rows[]; /* behind them: an sr_paths for each edge, an sr_exceptions for each worker */
} sr_board;

/*
 * What a process knows of it. A worker can write to all of the memory, so what leads to an address is read
 * from there once, and checked: a supervisor of root's must not be made to write elsewhere.
 */
typedef struct sr_scoreboard {
    sr_board *shared;
    sr_row *rows;
    sr_paths *paths; /* of each edge */
    sr_exceptions *
        exceptions; /* of each worker; nobody touches that of a row that has not failed: it takes no memory */
    uint32_t slots, edges;
    size_t size;
    int memfd;
} sr_scoreboard;

/* --- the memory --- */

/* Makes one. 1 <= slots <= SR_SLOTS_MAX, edges <= SR_EDGE_ROWS_MAX. NULL with errno */
sr_scoreboard *sr_scoreboard_new(uint32_t slots, uint32_t edges);

/*
 * In a new program: maps it, and makes the descriptor close-on-exec. NULL with errno; EINVAL: none, or of
 * another layout
 */
sr_scoreboard *sr_scoreboard_adopt(int memfd);

/* In a process that is not of the server: maps it to read. NULL with errno, as adopt. */
sr_scoreboard *sr_scoreboard_look(int memfd);

void sr_scoreboard_free(sr_scoreboard *s); /* in this process only */

/*
 * Sets right what a worker may have written over the numbers in the memory, before another process adopts it.
 */
void sr_scoreboard_mend(sr_scoreboard *s);

/*
 * In an edge: maps it, and finds the row of the edge. Workers can write the memory, so later the edge uses no
 * index that it reads there. NULL with errno, as adopt.
 */
sr_scoreboard *sr_scoreboard_map(int memfd, uint32_t edge, sr_row **row);

/* --- rows --- */

/* Claims a free row for a worker that this process is about to fork. -1: none is free. */
int32_t sr_scoreboard_claim(sr_scoreboard *s, uint32_t generation);

/*
 * In that worker, before all else: takes the row that `claimer` has claimed for it. False: that process is
 * gone, its claim was released, and the row may be another worker's.
 */
bool sr_scoreboard_occupy(sr_scoreboard *s, uint32_t slot, int32_t claimer);

/*
 * The worker or edge of the row is gone: makes the row free. Connections and requests that it still had are
 * counted.
 */
void sr_scoreboard_release(sr_scoreboard *s, uint32_t slot);

/* --- the whole server; any process --- */

/* Complete requests that wait in all edges. */
uint64_t sr_scoreboard_waiting(const sr_scoreboard *s);

/* A request has waited `ns` for a worker. */
void sr_scoreboard_waited(sr_scoreboard *s, int64_t ns);

/* Sums the counters of all rows. */
void sr_scoreboard_totals(const sr_scoreboard *s, sr_counters *sum);

/* Counts the end of a worker, or of an edge. */
void sr_scoreboard_exited(sr_scoreboard *s, sr_exit why);
void sr_scoreboard_edge_exited(sr_scoreboard *s, sr_exit why);

/* Replaces a note; for its one writer. False: it is longer than SR_NOTE_MAX, and the old one stays */
bool sr_scoreboard_tell(sr_scoreboard *s, sr_note_of of, const char *text, size_t len);

/*
 * Copies a note to out[SR_NOTE_MAX] and returns its length; 0: there is none, or its writer was killed while
 * writing
 */
size_t sr_scoreboard_told(const sr_scoreboard *s, sr_note_of of, char *out);

/* In the worker of the row: see sr_exceptions_add. */
void sr_scoreboard_failed(sr_scoreboard *s, uint32_t slot, sr_bytes what, sr_bytes path, int64_t now);

/* Adds up the exceptions of all workers in *sums, which the caller has zeroed. */
void sr_scoreboard_exceptions(const sr_scoreboard *s, sr_exception_sums *sums);

/* --- the request of a worker --- */

/*
 * In the worker: a request begins, which was complete at `began`; it has no mark yet. Keeps the first
 * SR_LINE_MAX bytes of method, space and target. Where the target lies behind the method and one byte, as in
 * a request line of HTTP/1, they are copied where they are, and up to 6 bytes behind the target are read as
 * well.
 */
void sr_row_begin(sr_row *row, sr_bytes method, sr_bytes target, const sr_peer *peer, int64_t began);

/*
 * In the worker, between two requests: by what the id of the next one is made; number 0: it has none. Who
 * reads it sees that the one before is over.
 */
static inline void sr_row_number(sr_row *row, uint64_t nonce, uint64_t number)
{
    atomic_store_explicit(&row->nonce, nonce, memory_order_release);
    atomic_store_explicit(&row->number, number, memory_order_release);
}

void sr_row_end(sr_row *row); /* in the worker: the request is over */

/* In the worker: the id that a trusted peer has given the request. What is none counts as absent. */
void sr_row_named(sr_row *row, sr_bytes id);

/*
 * In the worker: what the application says about its request, in UTF-8. Keeps as many whole characters as fit
 * into SR_MARK_MAX bytes. Control characters, which a terminal could obey, become spaces.
 */
void sr_row_mark(sr_row *row, const char *at, size_t len);

/*
 * Any process: copies what the row says. False: it changed all the time, or the worker was killed while
 * writing
 */
bool sr_row_read(const sr_row *row, sr_row_request *out);

/*
 * The line for a log: bytes other than 0x20 to 0x7e become \xNN, and what does not fit is left out. Returns
 * the bytes written.
 */
size_t sr_row_text(const sr_row_request *request, char *out, size_t cap);

/* The id of a request that is not over; empty: it has none. */
sr_bytes sr_row_id(const sr_row_request *request, char made[SR_REQUEST_ID_MADE]);

/*
 * Where perl is: another process asks, then sends a signal, whose handler in the worker tells. The handler
 * only copies. The place stays until somebody asks again.
 */
void sr_row_place_ask(sr_row *row);
void sr_row_place_tell(sr_row *row, const char *file, uint32_t line);

/* Copies the name to file[SR_PLACE_MAX] and returns its length; 0: the handler has not run */
size_t sr_row_place(const sr_row *row, char *file, uint32_t *line);

/* --- names; static --- */

const char *sr_worker_state_name(uint32_t state); /* "idle" */
const char *sr_exit_name(sr_exit why);            /* "max-requests" */

#endif
