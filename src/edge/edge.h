#ifndef SR_EDGE_H
#define SR_EDGE_H
/*
 * edge: the process that owns every connection. It parses requests, queues them in shared memory for whichever worker is
 * free, and sends what the workers reply. One process, one thread, one loop, no lock; no Perl.
 *
 * Files: edge.c the loop; dispatch.c from a complete request to the queue; deliver.c from a worker's records to the
 * client; crew.c the workers, from hello to death; mend.c what they may have spoiled; limits.c what ends a request before
 * its worker does; stop.c the end of all; others.c what is of all edges together; heir.c from one edge to the next; log.c the access log; settings.c what the
 * supervisor says at the start.
 *
 * Owner of all below: this process. A connection whose request is in the queue or with a worker is in SR_CONN_SERVING and
 * knows its slot; the entry of that slot knows the connection, or NULL when the client is gone. What a worker says is
 * checked as if a stranger had said it: a row that says what cannot be is broken (crew.c), which costs its own request.
 */
#include "../conn/engine.h"
#include "../conn/intake.h"
#include "../http/logrequest.h"
#include "../http/response.h"
#include "../share/common.h"
#include "../share/door.h"
#include "../share/queue.h"
#include "../share/reply.h"
#include "../share/sleepers.h"

/*
 * Signals of the supervisor, or of the owner: end politely, end at once, the end is near. Of those for real time, which nobody
 * else sends and which are queued: one TERM is lost when another is pending, as that which a terminal or a service manager
 * sends to the whole group.
 */
enum { SR_EDGE_STOP = 40, SR_EDGE_STOP_NOW, SR_EDGE_CLOSE };

enum { /* behind those of conn/engine.h */
       SR_SOURCE_LOBBY = SR_SOURCE_OTHERS,
       SR_SOURCE_VISITOR, /* has connected to the lobby, and said nothing yet */
       SR_SOURCE_DOORBELL,
       SR_SOURCE_LINE,   /* of a worker */
       SR_SOURCE_WORKER, /* pidfd: it has ended */
       SR_SOURCE_SIGNALS,
       SR_SOURCE_SUPERVISOR,
       SR_SOURCE_OWNER,  /* pidfd: it has ended */
       SR_SOURCE_ASKED,  /* its bell: another edge asks for something */
       SR_SOURCE_HEIR,   /* to whom connections are passed on */
       SR_SOURCE_LEGACY, /* from whom they come */
};

/* One worker that has said hello. */
typedef struct sr_mate {
    sr_source line;  /* kind SR_SOURCE_LINE; -1: nobody has this row */
    sr_source ended; /* kind SR_SOURCE_WORKER */
    sr_reader reader;
    uint32_t row;
    int32_t pid;    /* as the kernel says */
    uint32_t bound; /* slot of the request that it has spoken of and not ended, + 1; 0: none */
    int file;       /* that came before the record that speaks of it; -1: none */
    uint64_t file_number;
    bool broken; /* what it says is not read any more; the supervisor was told to end it */
    bool deaf;   /* a note on its line has to wait: it is not watched until sr_edge.hear_at */
} sr_mate;

enum { SR_VISITORS_MAX = 16 };

typedef enum sr_entry_phase {
    SR_ENTRY_FREE,
    SR_ENTRY_OPEN,  /* no head has come */
    SR_ENTRY_BODY,  /* the head is out, DATA or FILE may come */
    SR_ENTRY_WHOLE, /* all was said, or the client is gone: what comes is thrown away, until END */
} sr_entry_phase;

/* The request of a slot. */
typedef struct sr_entry {
    uint64_t number;
    sr_conn *conn;  /* NULL: its client is gone, or has been answered by the edge itself */
    uint8_t phase;  /* sr_entry_phase */
    bool spoken;    /* its worker has begun to reply */
    bool filed;     /* its body is a file, and was passed */
    bool doubted;   /* right now: who speaks of it has it */
    uint8_t doubts; /* looks since nobody seems to run it (mend.c) */
    uint32_t row; /* whose worker has spoken of it, + 1: from then on nobody else is believed; 0: none has */
    bool late;    /* the supervisor was told that it takes too long */
    sr_link behind; /* in sr_edge.behind: its client is gone, its worker is watched on; or alone */
    int64_t due_at; /* then: monotonic ns at which it takes too long */
    sr_buffer line; /* method and target, when head and body are in a file */
    sr_response response;
    uint64_t left;    /* SR_FRAMING_LENGTH: bytes of the body still owed */
    sr_buffer fields; /* of a head that came in several records */
    int request_fd;   /* file of head and body, until it is asked for; -1: none */
    int body_fd;      /* likewise */

    /* with a log: */
    sr_buffer values;  /* of its line: what LOG records have said, see share/reply.h, */
    sr_buffer outs;    /* and fields of its response: for each item an sr_reply_value and the value */
    sr_buffer request; /* its sr_request and head, when they are not in the slot */
} sr_entry;

/* What the access log needs beside the engine's. */
typedef struct sr_edge_log {
    sr_logformat *format;
    uint64_t id; /* of it */
    bool outs;   /* it asks for fields of responses */
    sr_logsource source;
    sr_logrequest request;                 /* whose line is made */
    sr_buffer values, outs_of, request_of; /* of the entry that it had */
    char address[SR_PEER_TEXT_MAX];
} sr_edge_log;

typedef struct sr_site { /* of a listener, for %v and %p */
    sr_bytes name, port;
} sr_site;

typedef struct sr_edge {
    sr_engine *engine; /* connections; its loop is ours */
    sr_sleepers *sleepers;
    size_t sleepers_bytes;
    sr_queue queue;
    sr_source lobby, doorbell, signals, supervisor, owner_end;
    int32_t owner;    /* the process that is its one worker and has started it; 0: there is a supervisor */
    uint32_t number;  /* of this edge: its place in the sleepers, and its row in the scoreboard */
    uint64_t key;     /* that a hello must bring */
    uint64_t name;    /* of the lobby */
    int64_t lobby_at; /* no descriptor is free, and the lobby is left alone until then; 0: it is not */
    sr_source visitors[SR_VISITORS_MAX]; /* -1: nobody */
    unsigned next_visitor;
    sr_mate *mates; /* rows of them */
    uint32_t rows;
    sr_entry *entries; /* slots of them */
    uint32_t slots;
    sr_buffer head;             /* scratch: the head being made */
    sr_buffer copy;             /* scratch: fields as the worker has sent them */
    sr_link behind;             /* entries whose client is gone, the first that is due first */
    int64_t mended_at, mend_ns; /* when mend.c last looked, and until it does again */
    int64_t hear_at;            /* when lines that are not watched are watched again; 0: there are none */
    int64_t nudged_at;   /* since when a request waits, or somebody was last woken for it; 0: none waits */
    int report;          /* lines for the supervisor; -1: STDERR, which is the log */
    int64_t graceful_ns; /* that requests have to finish once it is told to end */
    int64_t end_at;      /* monotonic ns: it ends then, whatever is left; 0: it is not told to */
    bool stopping;       /* the whole server ends, or this edge alone without an heir */
    int64_t pass_at; /* monotonic ns: the pair to the heir was full, and may have room again; 0: it was not */
    bool retiring; /* another edge has its place: it takes no more connections, and passes on those it has */
    sr_source heir, legacy; /* -1: there is none */
    sr_common *common;      /* NULL: there are no other edges */
    sr_source bell;
    int bells[SR_EDGES_MAX]; /* of all places that there are, by their numbers */
    uint32_t n_bells;
    uint64_t waiting_elsewhere; /* requests, as the others said when this turn began */
    bool leaving;               /* balancers are to find other servers: each response says close */
    bool fast;                  /* it ends with the requests that workers have at this moment */
    sr_edge_log *log;           /* NULL: there is none */
    sr_site sites[SR_LISTENERS_MAX];
} sr_edge;

/* What the supervisor says: see settings.c. */
typedef struct sr_settings {
    sr_config config;
    const char *name; /* for ps: points into the word */
    bool detach; /* whoever has started the server waits for nobody to have his terminal or pipe any more */
    int lobby, sleepers, control, report;
    int supervisor; /* its line; -1: none */
    uint32_t owner; /* see sr_edge */
    int64_t graceful_ns;
    int scoreboard;          /* -1: none */
    int common;              /* likewise */
    int bells[SR_EDGES_MAX]; /* an eventfd of each place that an edge may have */
    uint32_t n_bells;
    uint32_t edge; /* number of this one: its row there, and its place in the sleepers */
    struct {
        int fd;
        bool is_unix;
        sr_site site; /* points into the word */
    } listeners[SR_LISTENERS_MAX];
    unsigned n_listeners;
    int64_t uid, gid; /* to become; -1: as it was started */
    gid_t *groups;    /* owned */
    size_t n_groups;
    char *tmpdir, *server; /* owned */
    struct {
        int fd; /* the edge's; -1: no log */
        sr_sink_kind kind;
        uint32_t priority;  /* of syslog */
        const char *format; /* points into the word */
        int64_t min_ns;
        bool errors_only;
    } log;
} sr_settings;

/* settings.c: nothing is set: no descriptor, no limit, no listener */
void sr_settings_init(sr_settings *s);
/* from the words of the command line. False: *why says which word, and what is wrong with it. */
bool sr_settings_read(sr_settings *s, int argc, char **argv, const char **word, const char **why);

/* Method and target, as they came. */
static inline sr_bytes sr_edge_line_of(const sr_request *r, const char *base)
{
    return sr_bytes_of(base + r->method.at, r->target.at + r->target.len - r->method.at);
}

/* edge.c */
int sr_edge_new(sr_edge **out, const sr_settings *settings); /* 0 or errno */
void sr_edge_free(sr_edge *ed);
bool sr_edge_turn(sr_edge *ed, bool wait);          /* once around the loop; false: it is over */
void sr_edge_run(sr_edge *ed);                      /* until it is told to stop and nothing is left */
bool sr_edge_report(sr_edge *ed, const char *text); /* one line to the supervisor; false: it does not read */

/* others.c */
int sr_edge_others_open(sr_edge *ed, const sr_settings *s); /* 0 or errno */
void sr_edge_others_close(sr_edge *ed);
void sr_edge_others_publish(sr_edge *ed, uint64_t waiting); /* in each turn, before the wait */
void sr_edge_others_look(sr_edge *ed);                      /* and behind it */
void sr_edge_asked(sr_edge *ed); /* the bell has rung: others ask for room, or for a look at the listeners */

/* heir.c */
void sr_edge_retire(sr_edge *ed,
                    int heir);         /* from now on connections go to the other end of it; it is ours */
bool sr_edge_retire_step(sr_edge *ed); /* then, in each turn. True: nothing is left, or it takes too long */
void sr_edge_heir(sr_edge *ed);        /* the heir's end of the pair is gone */
void sr_edge_inherit(sr_edge *ed, int legacy); /* connections come from the other end of it; it is ours */
void sr_edge_legacy(sr_edge *ed);              /* some have come */

/* dispatch.c: a complete request is put into the queue, or refused. */
void sr_edge_dispatch(sr_edge *ed, sr_task *task);

/* log.c. All but open do nothing when there is no log. */
int sr_edge_log_open(sr_edge *ed, const sr_settings *s); /* 0 or errno */
void sr_edge_log_close(sr_edge *ed);
/* The head that a response begins with is in ed->head: fields of it that the line wants. */
void sr_edge_log_head(sr_edge *ed, sr_entry *en);
bool sr_edge_log_said(sr_edge *ed, sr_entry *en, const char *at,
                      size_t len); /* a LOG record. False: it cannot be */
/* Its end is told next: from now on, and until its slot is filled anew, its line can be made. */
void sr_edge_log_offer(sr_edge *ed, uint32_t slot);
void sr_edge_log_to(sr_edge *ed, int fd); /* its file was moved away: it goes on here */

/* deliver.c */
void sr_edge_deliver(sr_edge *ed, sr_mate *m);   /* what this worker has said, a ring of it at most */
bool sr_edge_replied(const sr_edge *ed);         /* somebody has said something */
void sr_edge_replies(sr_edge *ed);               /* of all who have */
void sr_edge_writable(sr_edge *ed, sr_conn *c);  /* a socket takes more of a response that is not whole yet */
void sr_edge_forget(sr_edge *ed, uint32_t slot); /* the slot is free again */
/* Its worker has ended (its PID), or says what cannot be (0): 502, or cut. */
void sr_edge_orphan(sr_edge *ed, uint32_t slot, int32_t ended);

/* limits.c: before a connection with a request is closed, or answered by the edge: nobody is there for the reply. */
void sr_edge_leave(sr_edge *ed, sr_conn *c);
void sr_edge_peer_event(sr_edge *ed, sr_conn *c, uint32_t events); /* of a connection with a request */
/* A time limit of a connection with a request is over. False: nobody has the request, it is refused. */
bool sr_edge_overdue(sr_edge *ed, sr_conn *c, sr_deadline_kind kind);
/* The supervisor is to know that this worker has ended with the request, and what became of its client: `end`. */
void sr_edge_tell_lost(sr_edge *ed, uint32_t slot, int32_t pid, const char *end);
void sr_edge_overdue_behind(sr_edge *ed);     /* likewise, of requests whose client is gone */
int64_t sr_edge_behind_at(const sr_edge *ed); /* monotonic ns of the first of those; INT64_MAX: none */

/*
 * stop.c. Politely: it takes no more connections, answers what comes on those it has until each was idle for a second,
 * and ends. Fast, or when it was told before: what workers have has a second. The supervisor's end is the same as the first.
 */
void sr_edge_stop(sr_edge *ed, bool fast);
void sr_edge_abandoned(
    sr_edge *ed); /* its owner is gone: nobody will answer any more, or needs its addresses less */
bool sr_edge_stop_step(sr_edge *ed); /* while it ends, in each turn. True: it is over */
void sr_edge_stopped(sr_edge *ed); /* after the last turn: what is left is refused, and the workers may go */

/* mend.c: what a worker may have spoiled in the memory that all share, and what it should have said */
int64_t sr_edge_mend_at(
    const sr_edge *ed);         /* monotonic ns of the next look; INT64_MAX: there is nothing to look at */
void sr_edge_mend(sr_edge *ed); /* when that has come */
/* The row whose worker says in its ring that it has begun with this request; -1: none. Looks at all rows. */
int32_t sr_edge_runs(const sr_edge *ed, uint32_t slot);
/* It is to be had again, by whoever looks first. False: that is not possible. */
bool sr_edge_requeue(sr_edge *ed, uint32_t slot);

/* crew.c */
/* The row of the worker that has the request, as it has said itself, or else as the claim says. -1: nobody. */
int32_t sr_edge_holder(const sr_edge *ed, uint32_t slot);
/* This worker speaks of the request. False: it is over, or another's, or this one has another. */
bool sr_edge_bind(sr_edge *ed, sr_mate *m, uint32_t slot, uint64_t number);
void sr_edge_lobby(sr_edge *ed);                 /* somebody has connected */
void sr_edge_hear_again(sr_edge *ed);            /* when hear_at has come */
void sr_edge_lobby_again(sr_edge *ed);           /* when lobby_at has come */
void sr_edge_visitor(sr_edge *ed, sr_source *s); /* and has said something */
void sr_edge_line(sr_edge *ed, sr_mate *m);
void sr_edge_ended(sr_edge *ed, sr_mate *m);
void sr_edge_broken(sr_edge *ed, sr_mate *m, const char *why);

#endif
