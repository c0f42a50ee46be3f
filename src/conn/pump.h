#ifndef SR_PUMP_H
#define SR_PUMP_H
/*
 * pump: psgix.io of a connection whose transport encrypts. The application gets one end of a pair of sockets;
 * the edge reads from the other end what goes to the client, and writes there what comes from it (relay.h).
 *
 * Owner: the connection. While its output is not empty, bytes of the application wait.
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

/* The response is complete: no event of the pair is looked at any more. */
void sr_pump_still(sr_engine *e, sr_conn *c);

#endif
