#ifndef SR_DEADLINE_H
#define SR_DEADLINE_H
/*
 * deadline: time limits of connections and their exchanges. There is one list for each kind of limit. All
 * limits of a kind are equally long, so a list is in order of time by appending to it, and the next one that
 * is due is the head of a list. A connection and its exchange have at most one between them.
 *
 * Called by: all files of this folder, and the edge. Failure: none.
 */
#include "../base/clock.h"
#include "../base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct sr_config;
struct sr_conn;
struct sr_engine;
struct sr_exchange;

typedef enum sr_deadline_kind {
    /* of a connection */
    SR_DEADLINE_HEAD,      /* --header-timeout */
    SR_DEADLINE_IDLE,      /* --keepalive-timeout */
    SR_DEADLINE_WRITE,     /* --write-timeout */
    SR_DEADLINE_LINGER,    /* reading on after the last response */
    SR_DEADLINE_GOAWAY,    /* exchanges run, and no other is to begin: it is time to say so (protocol.h) */
    SR_DEADLINE_HANDSHAKE, /* --tls-handshake-timeout */
    /* of an exchange */
    SR_DEADLINE_BODY,   /* --body-timeout */
    SR_DEADLINE_QUEUE,  /* --queue-timeout, or --request-timeout if that is shorter */
    SR_DEADLINE_LOOK,   /* a request waits: is its client still there? */
    SR_DEADLINE_CALL,   /* --request-timeout: a worker has the request */
    SR_DEADLINE_STREAM, /* --stream-timeout: its response has begun */
    SR_DEADLINE_STALL,  /* --write-timeout, of one of several: its client takes nothing of it */
    SR_DEADLINE_KINDS,
} sr_deadline_kind;

#define SR_NO_LIMIT (INT64_MAX / 4) /* ns; may be added to a time */

/* The limit of a connection or an exchange. */
typedef struct sr_deadline {
    sr_link link; /* in a list of sr_deadlines, or alone: there is no limit now */
    int64_t at;   /* monotonic ns; valid while it is linked, likewise: */
    uint8_t kind; /* sr_deadline_kind of that list */
} sr_deadline;

/* All that run. */
typedef struct sr_deadlines {
    sr_link list[SR_DEADLINE_KINDS];
    int64_t limit[SR_DEADLINE_KINDS]; /* ns */
    uint32_t running;                 /* a bit for each kind whose list may have an entry */
    int64_t due_at;      /* monotonic ns: none ends before this, but for those of SR_DEADLINE_LOOK */
    uint64_t n_idle;     /* length of the list SR_DEADLINE_IDLE */
    int waited_too_long; /* status when SR_DEADLINE_QUEUE is over: 503 or 504 */
} sr_deadlines;

void sr_deadlines_init(sr_deadlines *d, const struct sr_config *config); /* takes the lengths from there */

/* Whether this is a limit of a connection. */
static inline bool sr_deadline_of_connection(sr_deadline_kind kind)
{
    return kind <= SR_DEADLINE_HANDSHAKE;
}

/*
 * Starts a limit of this kind, one of connections, at e->now. Replaces the one that the connection or its
 * only exchange had. In SR_CONN_STREAMS the connection has one of its own, and so has each exchange.
 */
void sr_deadline_set(struct sr_engine *e, struct sr_conn *c, sr_deadline_kind kind);
void sr_deadline_set_exchange(struct sr_engine *e, struct sr_exchange *x,
                              sr_deadline_kind kind); /* of exchanges */

/*
 * The same for a limit that began earlier and ends at that time, monotonic ns; at the latest as
 * sr_deadline_set.
 */
void sr_deadline_keep(struct sr_engine *e, struct sr_conn *c, sr_deadline_kind kind, int64_t at);
void sr_deadline_keep_exchange(struct sr_engine *e, struct sr_exchange *x, sr_deadline_kind kind, int64_t at);

void sr_deadline_clear(struct sr_engine *e, struct sr_conn *c);
void sr_deadline_clear_exchange(struct sr_engine *e, struct sr_exchange *x);

/* Whether neither the connection nor its exchange has one. */
bool sr_deadline_none(const struct sr_conn *c);

/* Shortens the limits of this kind to `limit` ns, those that run already included. */
void sr_deadline_shorten(sr_deadlines *d, sr_deadline_kind kind, int64_t limit);

/* When the first limit of this kind ends, monotonic ns; there is one. */
static inline int64_t sr_deadline_next(const sr_deadlines *d, int kind)
{
    return SR_LIST_ENTRY(d->list[kind].next, sr_deadline, link)->at;
}

/* The same; 0: there is none. */
int64_t sr_deadline_first(const sr_deadlines *d, sr_deadline_kind kind);

/* The connection whose limit of this kind ends first; there is one. */
struct sr_conn *sr_deadline_head(const sr_deadlines *d, sr_deadline_kind kind);

/* The exchange of a limit of exchanges that is linked by `l`. */
struct sr_exchange *sr_deadline_exchange(sr_link *l);

/* The connection of a limit of this kind that is linked by `l`. */
struct sr_conn *sr_deadline_conn(sr_link *l, sr_deadline_kind kind);

/*
 * Whether a limit may have ended. Every request has a short one of SR_DEADLINE_LOOK, which seldom ends: were
 * it in due_at, the loop would wake for each.
 */
static inline bool sr_deadlines_due(const sr_deadlines *d, int64_t now)
{
    return now >= d->due_at ||
           (!sr_link_alone(&d->list[SR_DEADLINE_LOOK]) && sr_deadline_next(d, SR_DEADLINE_LOOK) <= now);
}

/*
 * ms until the next limit ends, for epoll_wait; -1: there is none. Less after the end of a limit that was the
 * next: due_at is found anew when it has passed.
 */
int sr_deadlines_timeout(struct sr_engine *e);

/*
 * The next kind in *kinds that has a deadline. -1: none. The loops over kinds run at every wait, and most
 * lists are empty, so kinds with an empty list are removed from *kinds and skipped from then on.
 */
static inline int sr_deadline_kind_next(sr_deadlines *d, uint32_t *kinds)
{
    while (*kinds) {
        int kind = __builtin_ctz(*kinds);
        *kinds &= *kinds - 1;
        if (!sr_link_alone(&d->list[kind]))
            return kind;
        d->running &= ~(1U << kind);
    }
    return -1;
}

#endif
