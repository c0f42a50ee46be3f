#ifndef SR_EDGE_H
#define SR_EDGE_H
/*
 * edge: the process that owns every connection. It parses requests, puts them into a queue in shared memory
 * from which free workers take them, and sends what the workers reply. One thread, one loop, no lock, no
 * Perl.
 *
 * The parts, each with a header of its own; xt/dist/floors.t has their order:
 *   requests   dispatch from a complete request to the queue; turns whose stream is next; lanes holds
 *              requests of --lane back, and lanerules says which; entry the request in a slot, and slots
 *              their number; holder which worker has it; presence whether its client is there; limits what
 *              ends it before its worker does; mend what workers may have spoiled
 *   responses  deliver from a worker's reply to the client; files answers from the folders of --static; plain
 *              redirects to https; upgrade opens WebSockets; answer is what these have in common
 *   workers    crew from their hello to their end; calls counts the calls of the application by path; slow
 *              reports those that run long
 *   reports    log the access log; report lines for the supervisor; failures which clients fail; text how
 *              messages name a request
 *   edges      others the limits of all together; heir connections that move to another edge; keys what TLS
 *              needs; keeper the process that reads it; publish items of workers and of the supervisor;
 *              census which channels there are
 *   process    setup the command line; rights and sandbox what it may do; stop the end
 *
 * Owner: all structs here belong to the edge and to its one thread. An exchange whose request is in the queue
 * or with a worker has the number of the slot, and its connection is in SR_CONN_SERVING; the entry of the
 * slot points back to the exchange, or has NULL when the client is gone.
 * Trust: what a worker says is checked as if a stranger had said it (crew.h).
 * Failure: nothing that one client or worker does, and no lack of memory or descriptors, ends the process.
 */
#include "../conn/engine.h"
#include "../share/common.h"
#include "../share/queue.h"
#include "setup.h"

/*
 * Signals of the supervisor, or of the owner: end gracefully; end fast; say "Connection: close" in each
 * response. They are real-time signals, which nobody else sends and which are queued: a second SIGTERM is
 * lost while one is pending, such as that which a terminal or a service manager sends to the whole process
 * group.
 */
#ifdef __APPLE__ /* has no more than 31: SIGEMT, SIGVTALRM, SIGPROF */
enum { SR_EDGE_STOP = 7, SR_EDGE_STOP_NOW = 26, SR_EDGE_CLOSE };
#else
enum { SR_EDGE_STOP = 40, SR_EDGE_STOP_NOW, SR_EDGE_CLOSE };
#endif

enum { /* kinds of sr_source, after those of conn/engine.h */
       SR_SOURCE_LOBBY = SR_SOURCE_OTHERS,
       SR_SOURCE_VISITOR,  /* a connection to the lobby that has not said hello yet */
       SR_SOURCE_DOORBELL, /* a worker has replied */
       SR_SOURCE_SLOW,     /* the timer of slow.c */
       SR_SOURCE_LINE,     /* a worker has sent a note */
       SR_SOURCE_WORKER,   /* pidfd: a worker has ended */
       SR_SOURCE_SIGNALS,
       SR_SOURCE_SUPERVISOR, /* the supervisor has sent a note */
       SR_SOURCE_OWNER,      /* pidfd: the owner has ended */
       SR_SOURCE_ASKED,      /* another edge has rung the bell of this one */
       SR_SOURCE_HEIR,       /* the edge that takes connections over has ended */
       SR_SOURCE_LEGACY,     /* connections come from the edge before */
       SR_SOURCE_KEYS,       /* the keeper has sent a set of keys */
};

/* A worker that has said hello; one for each row. */
typedef struct sr_edge_worker {
    sr_source line;  /* kind SR_SOURCE_LINE; fd -1: the row has no worker */
    sr_source ended; /* kind SR_SOURCE_WORKER */
    sr_reader reader;
    uint32_t row;
    int32_t pid;          /* as the kernel says */
    uint32_t bound;       /* slot + 1 of the request that it has spoken about and not finished; 0: none */
    int file;             /* descriptor that came before the record that refers to it; -1: none */
    uint64_t file_number; /* of the request that the file is for; 0: none */
    sr_buffer item;       /* of publish.c: what it has begun to publish */
    bool unfit;           /* there was no memory for a part of that */
    bool broken;          /* it broke the rules: nothing is read from it any more */
    bool paused;          /* the line is not watched for now: a note there has to wait */
    struct {
        int64_t from, most; /* monotonic ns at which it began, 0: none; ns that it took at most */
    } call; /* the last one, of a connection with turns, whose time is not counted yet (turns.h) */
    /* number + 1 of the lane whose place it keeps, although its request has an end here; 0: none (lanes.h) */
    uint8_t lane;
    uint64_t lane_number; /* of that request */
} sr_edge_worker;

enum { SR_VISITORS_MAX = 16 };

/* What a request in a slot waits for before it gets a number. */
typedef enum sr_entry_wait {
    SR_ENTRY_NOTHING,
    SR_ENTRY_LANE, /* a place in its lane */
    SR_ENTRY_TURN, /* the turn of its connection */
} sr_entry_wait;

typedef enum sr_entry_phase {
    SR_ENTRY_FREE,
    SR_ENTRY_OPEN,  /* no head has come from the worker */
    SR_ENTRY_BODY,  /* the head is sent, records of the body may follow */
    SR_ENTRY_WHOLE, /* the response is complete, or the client is gone: records are thrown away until END */
} sr_entry_phase;

/* The request in a slot of the queue; one for each slot. */
typedef struct sr_entry {
    uint64_t number; /* of the request; 0: the slot is free, or it waits for something else than a worker */
    sr_exchange *exchange; /* NULL: the client is gone, or was answered by the edge itself */
    uint8_t phase;         /* sr_entry_phase */
    uint8_t waits_for;     /* sr_entry_wait */
    bool spoken;           /* a worker has begun to reply */
    bool filed;            /* the body of the response is a file, which was passed */
    bool doubted;          /* for the moment any worker is believed that speaks about it (mend.c) */
    uint8_t lane;          /* number + 1 of its lane; 0: it has none (lanes.h) */
    uint8_t doubts;        /* looks of mend.c in a row at which nobody seemed to run it */
    uint32_t row;  /* row + 1 of the worker that is bound to it, the only one that is believed; 0: none */
    bool late;     /* the supervisor was told that it takes too long */
    bool overdue;  /* it was counted as that, though the supervisor may have to be told again */
    uint8_t limit; /* without an exchange: the sr_limit that its worker is watched for */
    bool held;     /* the worker waits, as there is no room for what the client has not read */
    bool slow;     /* it was counted as slow (slow.c) */
    bool trusted;  /* a trusted peer has sent it */
    sr_turn *turn; /* of its connection, if that has several streams; NULL: not. One of its owners */
    sr_link link;  /* in sr_edge.abandoned, in the list of its lane or of its turn, or alone */
    sr_link
        runs_on; /* without an exchange: in a list of what its client has cancelled (sr_engine.abandoned) */
    /* in the first: monotonic ns at which it takes too long; before, with a lane: when that has let it in */
    int64_t due_at;
    sr_buffer line;   /* method and target, when head and body are in a file */
    uint64_t lent_at; /* when the application got the socket: see sr_send_total; 0: unknown */
    sr_buffer fields; /* of a response head that comes in several records */
    int request_fd;   /* file of head and body, for the worker to ask for; -1: none. Owned */
    int body_fd;      /* likewise, of the body alone */
    uint64_t spooled; /* bytes of that */

    /* for the access log */
    sr_buffer values;  /* payloads of the LOG records, see share/reply.h */
    sr_buffer outs;    /* fields of the response that the format asks for, each after an sr_reply_value */
    sr_buffer request; /* copy of the sr_request and the head, when they are not in the slot */
} sr_entry;

typedef struct sr_turning { /* of turns.c */
    sr_link line; /* sr_turn of connections of which requests wait for their turn: the next one first */
    uint64_t n;   /* requests that do */
    uint64_t unnumbered; /* these, and those that wait in lanes */
    int64_t call_ns;     /* how long calls have taken of late; 0: unknown */
} sr_turning;

typedef struct sr_slow_log { /* private to slow.c */
    int64_t limit_ns;        /* --slow-log; 0: off */
    sr_source timer;         /* kind SR_SOURCE_SLOW */
    int64_t look_at;         /* monotonic ns of the next look; INT64_MAX: there is no request */
    int64_t each_ns;         /* so often there may be a report, and `burst` of them at once */
    int64_t spent_to;        /* the time before this was used up for reports */
    int64_t sum_at;          /* when to tell how many were left out */
    uint64_t left_out;
    uint32_t burst;
} sr_slow_log;

typedef struct sr_untold { /* private to failures.c */
    int64_t quiet_until;   /* monotonic ns */
    uint64_t left_out;     /* since the last line */
} sr_untold;

typedef struct sr_visitors { /* private to crew.c */
    sr_source source;
    int64_t resume_at;                   /* monotonic ns until which it is not watched; 0: it is */
    sr_source visitors[SR_VISITORS_MAX]; /* fd -1: unused */
    unsigned next_visitor;
} sr_visitors;

typedef struct
    sr_held {        /* of deliver.c: workers that wait, as there is no room for what clients have not read */
    bool some;       /* some entry may be held */
    int64_t pays_at; /* when a client may pay for that again, monotonic ns */
    int64_t since;   /* since when some entry is held; 0: none is */
} sr_held;

typedef struct sr_mending { /* private to mend.c */
    int64_t at;             /* monotonic ns of the last look */
    int64_t each_ns;        /* until the next one; 0: soon */
} sr_mending;

typedef struct sr_ending { /* of stop.c */
    int64_t graceful_ns;   /* how long requests may take once the edge is told to end */
    int64_t end_at;        /* monotonic ns at which it ends, whatever is left; 0: it was not told to end */
    bool begun;            /* it ends without an heir */
    bool fast;
} sr_ending;

typedef struct sr_passing_on { /* of heir.c */
    sr_source pair, legacy;    /* to the heir, and from the edge before; fd -1: there is none */
    int64_t pass_at;           /* monotonic ns of the next try, as the pair was full; 0: it was not */
    int64_t
        layout_by; /* monotonic ns until which the heir has to tell its layout; 0: it has, and it is ours */
} sr_passing_on;

typedef struct sr_neighbours { /* of others.c */
    sr_common *common;         /* NULL: there is one edge only */
    sr_source bell;
    int bells[SR_EDGES_MAX]; /* of all places for edges, by their numbers */
    uint32_t n_bells;
    bool some;        /* there are others, as read in this step of the loop, likewise: */
    uint64_t waiting; /* requests that wait in other edges */
    uint64_t running; /* requests of other edges that workers have */
} sr_neighbours;

typedef struct sr_answers { /* what is answered here; set when the edge is made */
    bool any;               /* any of the next three is set, or there are lanes */
    sr_mounts *mounts;      /* of --static; NULL: there are none */
    sr_mounts *webroot;     /* of --acme-webroot, for connections without TLS; NULL: there is none */
    bool redirects;         /* --https-redirect */
    uint16_t https_port;    /* to which it redirects */
} sr_answers;

typedef struct sr_calls { /* of calls.c: the sample of short calls */
    int64_t left;         /* ns of them until the next instant; 0 while calls count exactly */
    int64_t later;        /* the same when they do not any more */
    int64_t at;           /* of the last instant, in its interval */
    int64_t second;       /* monotonic ns at which `exact` was set */
    uint32_t exact;       /* so many more calls count exactly */
    uint64_t random;
    sr_path_index index;
} sr_calls;

typedef struct sr_edge {
    sr_engine *engine; /* the connections and the loop; owned */
    sr_sleepers *sleepers;
    size_t sleepers_bytes;
    sr_queue queue;
    sr_source doorbell, signals, supervisor, owner_end;
    int32_t owner;   /* PID of the process that has started this edge for itself; 0: a supervisor has */
    uint32_t number; /* of this edge: its place in the sleepers */
    uint64_t key;    /* of the server, which a hello must bring */
    uint64_t name;   /* of the lobby */
    int report;      /* pipe for messages to the supervisor; -1: they go to STDERR, which is the log */
    sr_edge_worker *workers;  /* `rows` of them */
    uint32_t rows, n_workers; /* of these, with a worker */
    int64_t lines_resume_at;  /* monotonic ns until which paused lines are not watched; 0: none is */
    bool supervisor_paused, keys_paused;
    sr_entry *entries; /* `slots` of them */
    uint32_t slots;
    sr_link abandoned; /* entries whose client is gone and whose worker is watched on, in order of due_at */
    int64_t nudged_at; /* since when a request waits, or a worker was last woken for it; 0: none waits */
    sr_buffer text;    /* scratch: fields of a response that the edge makes, or bytes of a file */
    sr_buffer copy;    /* scratch: fields of a record, copied from the ring */
    sr_source keys;    /* line to the keeper (keys.h); fd -1: there is none */

    /* what belongs to one file */
    sr_visitors lobby;
    sr_held held;
    sr_mending mend;
    sr_ending stop;
    sr_passing_on heir;
    sr_neighbours others;
    sr_answers answer;
    sr_slow_log slow;
    sr_link published; /* of publish.c: items that have come */
    size_t n_published;
    sr_turning turns;
    sr_calls calls;
    sr_untold untold[SR_FAILURES];    /* handshakes that have failed */
    sr_untold floods[SR_FLOODS];      /* of clients that speak HTTP/2 */
    struct sr_websockets *websockets; /* NULL: there are none */
    const char *paths;                /* of --websocket, with spaces between them; NULL: all */
    struct sr_live *live;             /* NULL: nothing is held */
    bool holds_all;                   /* --hold: what applications leave here */
    struct sr_log *log;               /* NULL: there is no access log */
    struct sr_lanes *lanes;           /* NULL: there are no lanes */
    bool keeps;                       /* there is one of these: an entry has more to give back */
    sr_site sites[SR_LISTENERS_MAX];
} sr_edge;

/* --- the loop --- */

/* Returns 0 or errno, and frees what it has made on failure. */
int sr_edge_new(sr_edge **out, const sr_setup *setup);
void sr_edge_free(sr_edge *ed); /* closes all connections */

/* Announces the edge to the workers, then serves until it has ended. */
void sr_edge_run(sr_edge *ed);
/*
 * One step of the loop: time limits, one wait, one batch of events. Waits for an event if `wait`. False: it
 * has ended.
 */
bool sr_edge_step(sr_edge *ed, bool wait);

#endif
