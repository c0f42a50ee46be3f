#ifndef SR_PUMP_H
#define SR_PUMP_H
/*
 * pump: psgix.io of a connection whose transport encrypts, or of one stream of many. The application gets one
 * end of a pair of sockets; the edge reads from the other end what goes to the client, and writes there what
 * comes from it (relay.h, h2/tunnel.h).
 *
 * Owner: the connection, the stream, or neither any more (parting.h). While the output to the client is not
 * empty, bytes of the application wait.
 */
#include "engine.h"

enum { SR_PUMP_BYTES = 16 * 1024 };

typedef struct sr_pump {
    sr_source source; /* must be first; our end of the pair, kind SR_SOURCE_PUMP; -1: there is none yet */
    sr_conn *conn;    /* NULL: both are over */
    sr_exchange *exchange; /* of the stream (sr_protocol.pumped); NULL: all of the connection is pumped */
    uint32_t interest;     /* events of the pair that are watched; 0: it is not in the epoll set */
    sr_buffer up;          /* from the client, that the application has not taken */
    sr_buffer
        head; /* of a stream: what the application has written of its answer, as long as it is not complete */
    bool up_over;   /* the client has ended its side, and the application was told */
    bool spoken;    /* the application has written something */
    bool failed;    /* of a stream: what it has written is no answer */
    bool down_ends; /* the application has ended its side; the client is told when its output is empty */
    bool down_over;

    /* parting.c */
    sr_link parting;
    int64_t until; /* monotonic ns */
    int unread;    /* bytes that the application had not read when that was set */
} sr_pump;

/* Without a pair. NULL: no memory. */
sr_pump *sr_pump_new(sr_conn *c);
void sr_pump_free(sr_engine *e, sr_pump *p); /* NULL is fine */

/* Makes the pair; *theirs is for the application. Returns 0 or errno. */
int sr_pump_pair(sr_pump *p, int *theirs);

/* Watches these events of the pair; 0: none. False: epoll_ctl failed. */
bool sr_pump_watch(sr_engine *e, sr_pump *p, uint32_t events);

/* The response is complete: no event of the pair is looked at any more. */
void sr_pump_still(sr_engine *e, sr_pump *p);

/*
 * Writes what waits for the application, once; *n is how much that was. What a call has returned: 0: go on;
 * EAGAIN: wait; otherwise that side is gone. If the application has closed its end, its bytes are dropped,
 * and what it has said goes out.
 */
int sr_pump_push(sr_pump *p, size_t *n);

/*
 * Reads what the application has written, once. *n is 0 when it says no more, and -1 when there is nothing,
 * or as returned.
 */
int sr_pump_take(sr_pump *p, char *to, ssize_t *n);

/* Whether the application has closed its end, rather than shut it down for writing. */
bool sr_pump_closed(const sr_pump *p);

/* 0, EAGAIN or why a call on one side has failed, by what it has returned. */
int sr_pump_result(ssize_t n);

#endif
