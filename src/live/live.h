#ifndef SR_LIVE_H
#define SR_LIVE_H
/*
 * live: channels, who has subscribed to them, and what is published there (GRIP, --hold).
 *
 * A subscriber is a connection that an application has left with the edge: a response that goes on (hold.h),
 * or a WebSocket. It has subscribed to channels by name. What is published to a channel is given to its
 * subscribers in the order of their subscriptions, SR_LIVE_SLICE of all channels in a step of the loop, so
 * that ten thousand of them hold nobody up. The publications of one channel are delivered one after another.
 * A publisher waits for none of them.
 *
 * A channel is there while it has subscribers or publications, and for SR_LIVE_REMEMBERS afterwards if its
 * last publication had an id: an application that read its data before that publication, and subscribes after
 * it, says so by prev-id, and is told. What a subscriber says binds nobody else. After SR_LIVE_REMEMBERS it
 * is believed even if it says another id, as what was published out of order is not what the application has
 * as its last; then the prev-id of the next publication has to be what it has said.
 *
 * Owner: the edge. One thread. Failure: without memory nobody subscribes, or a publication is dropped and
 * counted.
 */
#include "../base/clock.h"
#include "../base/list.h"
#include "../conn/engine.h"
#include "../share/item.h"

enum {
    SR_LIVE_SLICE = 64,             /* deliveries in a step of the loop */
    SR_LIVE_DELIVERY = 4096,        /* bytes; a longer one counts as several */
    SR_LIVE_REMEMBERS = 60,         /* seconds */
    SR_LIVE_REMEMBERED_MAX = 10000, /* channels without subscribers */
    SR_LIVE_WHEEL = 256,            /* seconds of the timers that have a list of their own */
};
#define SR_LIVE_PENDING_MAX                                                                                  \
    ((size_t)64 * 1024 * 1024) /* bytes of publications that are being delivered; others are dropped */

typedef struct sr_live sr_live;
typedef struct sr_channel sr_channel;
typedef struct sr_subscriber sr_subscriber;

/* Something that was published. Owned by its channel until it is delivered. */
typedef struct sr_publication {
    sr_link link;      /* in sr_channel.publications */
    sr_link cursor;    /* in sr_channel.subscriptions, behind the last one that has it; alone: it waits */
    uint32_t sequence; /* those that have subscribed later do not get it */
    /* subscribers that have arrived later had it from the old edge (recent.h); UINT32_MAX: none had */
    uint32_t told;
    bool gap;          /* one before it did not come: its prev_id is not the id of the one before */
    sr_item_view item; /* points into: */
    size_t bytes;
    char packed[];
} sr_publication;

/* What a subscriber does. Each call may end it, with its connection. */
typedef struct sr_subscriber_ops {
    sr_held_kind kind;
    /* It gets the publication. */
    void (*deliver)(sr_live *live, sr_subscriber *s, const sr_publication *p);
    /* It has asked for the prev-id to be right, and one publication was lost. */
    void (*gap)(sr_live *live, sr_subscriber *s);
    /* The time of its timer has come (sr_timer_set). */
    void (*due)(sr_live *live, sr_subscriber *s);
    /* The edge ends, or hands over to another one, which can't have this connection. */
    void (*leave)(sr_live *live, sr_subscriber *s);
    /* Appends what the other edge needs to go on (move.h). False: not now. NULL: it never moves. */
    bool (*pack)(sr_live *live, const sr_subscriber *s, sr_buffer *out);
    /* The other edge has it: it ends here without a word. NULL: nothing is to be done. */
    void (*passed)(sr_subscriber *s);
    /*
     * Whose client it is, for subscriptions that skip what he publishes. len 0: nobody has said it. NULL:
     * never.
     */
    sr_bytes (*user)(const sr_subscriber *s);
} sr_subscriber_ops;

typedef struct sr_subscription {
    sr_link link; /* in sr_channel.subscriptions; must be first */
    sr_channel *channel;
    sr_subscriber *subscriber;
    struct sr_subscription *next; /* of the subscriber */
    uint32_t since;               /* sr_live.sequence */
    /*
     * sr_channel_mark of the publication that it has seen last, as it says; 0: it has said nothing, or the
     * next one has come
     */
    uint32_t expects : 30;
    bool ordered : 1;    /* a gap ends it */
    bool skips_self : 1; /* gets nothing of its user */
} sr_subscription;

/* The first member of what is held (sr_exchange.held). As small as it can be: there may be ten thousand. */
struct sr_subscriber {
    const sr_subscriber_ops *ops;
    sr_exchange *exchange;          /* that is held */
    sr_subscription *subscriptions; /* the newest first */
    sr_link timer;                  /* in a list of the wheel; alone: there is none */
    uint32_t due;                   /* second of the monotonic clock */
    uint32_t arrival;               /* from another edge, as which, from 1; 0: it began here */
    sr_subscription first;          /* one that needs no memory of its own; its channel is NULL: it is free */
};

struct sr_channel {
    sr_channel *next; /* in its chain of the table */
    uint64_t hash;
    sr_link subscriptions;
    sr_link publications; /* the first one is being delivered */
    sr_link link;         /* in sr_live.busy while it has publications, or in sr_live.remembered, or alone */
    uint64_t n;           /* subscriptions */
    uint64_t messages;    /* published while it is there */
    uint32_t forget;      /* second at which it is not remembered any more */
    uint8_t last_len, name_len;
    bool lost;        /* since its last publication, one was dropped for lack of room */
    uint32_t last_at; /* second of its last publication */
    char *last;       /* id of its last publication; owned; NULL: it had none */
    char name[];
};

struct sr_live {
    sr_engine *engine;
    sr_channel **chains;
    size_t n_chains, n_channels; /* the first is a power of two */
    sr_link busy;                /* channels with publications: the next one first */
    sr_link remembered;          /* channels without subscribers, in order of `forget` */
    size_t n_remembered;
    size_t pending;               /* bytes of publications */
    uint32_t sequence;            /* of publications */
    uint64_t seed;                /* of hashes */
    bool draining;                /* nobody subscribes any more */
    bool retiring;                /* only who can move does */
    uint32_t yields;              /* retiring: a bit for each sr_held_kind that moves */
    uint64_t held[SR_HELD_KINDS]; /* subscribers */
    struct {
        sr_link slot[SR_LIVE_WHEEL];
        uint32_t second; /* all that were due before it have been called */
        size_t n;
    } wheel;
    uint64_t ended;             /* subscribers so far */
    struct sr_recent *recent;   /* of recent.c; owned */
    struct sr_clients *clients; /* of hold.c: how many each address has; NULL: they are not counted */
};

/* NULL: no memory. `e` outlives it. */
sr_live *sr_live_new(sr_engine *e);
void sr_live_free(sr_live *live); /* behind the connections */

/* One that has no subscription yet, and is counted from now on. */
void sr_subscriber_begin(sr_live *live, sr_subscriber *s, sr_exchange *x, const sr_subscriber_ops *ops);
/* It ends: its subscriptions and its timer are gone. */
void sr_subscriber_end(sr_live *live, sr_subscriber *s);

typedef struct sr_wanted {
    sr_bytes channel;
    sr_bytes prev_id; /* of the publication that it has seen last; len 0: it does not say */
    bool skips_self;
    bool moved; /* from another edge, whose order is another one */
} sr_wanted;

typedef enum sr_subscribed {
    SR_SUBSCRIBED,
    SR_SUBSCRIBED_LATE, /* it has subscribed, but what came behind prev_id it has missed */
    SR_SUBSCRIBED_NOT,  /* no memory, or it has SR_GRIP_CHANNELS already */
} sr_subscribed;

/* Again: nothing happens. */
sr_subscribed sr_subscribe(sr_live *live, sr_subscriber *s, const sr_wanted *wanted);
void sr_unsubscribe(sr_live *live, sr_subscriber *s, sr_bytes channel);

/* Whether this subscription leaves the item out, as its own user has published it. */
bool sr_subscription_skips(const sr_subscription *sub, const sr_item_view *item);

/* Publishes a packed item (share/item.h), which is copied. False: it is not well-formed, or dropped. */
bool sr_live_publish(sr_live *live, sr_bytes packed);

/* Its timer fires in so many seconds, at least 1; it has one at a time. 0: never. */
void sr_timer_set(sr_live *live, sr_subscriber *s, uint32_t seconds);

/* A step: deliveries, timers, what is to be forgotten. */
void sr_live_step(sr_live *live);
/* ms until the next step is due; 0: there is more to do; -1: none is. */
int sr_live_timeout(const sr_live *live);

/* All leave: the edge stops. */
void sr_live_drain(sr_live *live);
/* Another edge takes over: those leave that can't move, and nobody else comes that can't. */
void sr_live_retire(sr_live *live);
/*
 * That edge takes over only these kinds, a bit for each sr_held_kind: the others leave, and nobody else comes
 * of them.
 */
void sr_live_yield(sr_live *live, uint32_t kinds);
/* Whether what is held on this connection may move to another edge. */
bool sr_live_moves(const sr_conn *c);
/*
 * Bytes that a connection may have to send beside what its client is behind: one with several exchanges sends
 * what came in a step of the loop at the end of that. As much as sr_live_step delivers.
 */
static inline size_t sr_live_unsent(const sr_conn *c)
{
    return sr_link_alone(&c->due) ? 0 : (size_t)SR_LIVE_SLICE * SR_LIVE_DELIVERY;
}

/* Whether it need not leave: the edge goes on, or it can move to the edge that takes over. */
bool sr_live_stays(const sr_live *live, const sr_subscriber *s);

/* Writes how many are held to the row of the edge. */
void sr_live_tell(const sr_live *live);

/* Calls `each` for channels with subscribers, until it returns false. */
void sr_live_channels(const sr_live *live, bool (*each)(void *with, const sr_channel *c), void *with);

#endif
