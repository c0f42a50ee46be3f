#ifndef SR_PUMP_H
#define SR_PUMP_H
/*
 * pump: psgix.io of a connection whose transport encrypts. The application gets one end of a pair of sockets;
 * the edge reads from the other end what goes to the client, and writes there what comes from it.
 *
 * Neither side is read further than the other takes: at most SR_PUMP_BYTES wait in each direction, those for the client
 * in its output (conn->out), so that they and a response keep their order. The end of
 * one side is passed on (close_notify, shutdown); when both have ended, or the application has closed its end,
 * the connection is closed. While a worker has the request, a closed end means nothing yet: the handle is closed
 * with %env, and the response of the application may come after that.
 *
 * An application may write to the handle and answer in the ordinary way as well. What it has written goes out
 * before what it says in the response afterwards, as if both wrote to the socket of the client.
 *
 * Owner: the connection. While its output is not empty, bytes of the application wait.
 * Closing: all functions but sr_pump_new and sr_pump_free may close and free the connection.
 */
#include "engine.h"

enum { SR_PUMP_BYTES = 16 * 1024 };

typedef struct sr_pump {
    sr_source source; /* must be first; our end of the pair, kind SR_SOURCE_PUMP */
    sr_conn *conn;
    uint32_t interest; /* events of the pair that are watched; 0: it is not in the epoll set */
    sr_buffer up;      /* from the client, that the application has not taken */
    bool up_over;      /* the client has ended its side, and the application was told */
    bool spoken;       /* the application has written something */
    bool down_ends;    /* the application has ended its side; the client is told when its output is empty */
    bool down_over;
} sr_pump;

/* Makes the pair; *theirs is for the application. Returns 0 or errno. */
int sr_pump_new(sr_conn *c, int *theirs);
void sr_pump_free(sr_engine *e, sr_conn *c);

/* An event of either side. */
void sr_pump_step(sr_engine *e, sr_conn *c);

/*
 * Sends or keeps all that the application has written: what it says by other means, such as a response, comes after
 * that. Closes nothing; conn->gone says that the client cannot be reached.
 */
void sr_pump_drain(sr_engine *e, sr_conn *c);

/* The response is complete: no event of the pair is looked at any more. */
void sr_pump_still(sr_engine *e, sr_conn *c);

/* Whether bytes of the application have not been sent to the client. */
bool sr_pump_busy(const sr_conn *c);

#endif
