#ifndef SR_HELD_H
#define SR_HELD_H
/* held: what is kept of a held response. For hold.c and move.c, which own it in turn. */
#include "live.h"

/*
 * What was published while the application was still sending its response: its client may have seen the first
 * bytes of that.
 */
typedef struct sr_held_early {
    sr_buffer fields, body; /* of a stream: its bytes are the body */
    int status;
} sr_held_early;

/* How it ends when it would be kept. */
typedef enum sr_held_end {
    SR_HELD_GOES_ON,
    SR_HELD_CLOSED,   /* by an item */
    SR_HELD_ANSWERED, /* likewise: the response is in `early` */
    SR_HELD_SLOW,     /* too much was published */
    SR_HELD_OVER,     /* as the application would end it */
} sr_held_end;

/* A response that waits for a publication, and is sent if none comes. */
typedef struct sr_held_answer {
    sr_buffer fields, body;
    sr_held_early *early; /* as below; owned */
    int status;
    bool close;
} sr_held_answer;

typedef struct sr_hold {
    sr_subscriber subscriber;   /* must be first */
    union {                     /* by the kind of the subscriber */
        sr_held_answer *answer; /* of SR_HELD_RESPONSE. Owned */
        sr_held_early *early;   /* NULL: nothing was. Owned, until it is kept */
    };
    uint32_t seconds;  /* of Grip-Keep-Alive, 0: nothing is sent; or of Grip-Timeout */
    uint32_t sent_at;  /* second at which something was sent */
    uint16_t content;  /* bytes of what keeps the connection alive: */
    bool counted : 1;  /* for its client */
    bool kept : 1;     /* the response of the application is complete */
    bool interval : 1; /* it is kept alive also when something was sent */
    uint8_t ends;      /* sr_held_end */
    uint8_t user;      /* bytes of the user, behind the content */
    char data[];
} sr_hold;

/* NULL: it is a stream. */
static inline sr_held_answer *sr_held_answer_of(const sr_hold *h)
{
    return h->subscriber.ops->kind == SR_HELD_RESPONSE ? h->answer : NULL;
}

#endif
