#ifndef SR_INTAKE_H
#define SR_INTAKE_H
/*
 * intake: from a newcomer, or from bytes, to a complete request.
 */
#include "engine.h"

/* A complete request. All pointers die with sr_intake_close. */
typedef struct sr_task {
    sr_conn *conn;
    const sr_request *request;
    const char *base; /* the bytes that request's spans point into */
    sr_bytes body;    /* a body in memory, maybe empty */
    int body_fd;      /* or -1: a body in a file, from offset 0; whoever takes the task owns it */
    uint64_t body_length;

    const sr_forwarded *forwarded; /* into base; NULL: nothing is known of scheme, host and port */
} sr_task;

typedef enum sr_intake {
    SR_INTAKE_WAIT,  /* nothing to serve; the connection waits for events, or is closed */
    SR_INTAKE_READY, /* a complete request: task is filled, and closed or refused before the next call */
} sr_intake;

sr_intake sr_intake_accept(sr_engine *e, sr_listener *l, sr_task *task);
sr_intake sr_intake_readable(sr_engine *e, sr_conn *c, sr_task *task);
sr_intake sr_intake_buffered(sr_engine *e, sr_conn *c, sr_task *task); /* bytes are in hand already */

/* The task was copied: what follows its bytes is kept for the next request. */
void sr_intake_close(sr_engine *e, sr_conn *c);
void sr_intake_refuse(sr_engine *e, sr_task *task, int status); /* nobody can serve it */

#endif
