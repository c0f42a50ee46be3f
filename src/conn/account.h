#ifndef SR_ACCOUNT_H
#define SR_ACCOUNT_H
/*
 * account: what became of each request, told once: when the kernel has the last byte of its response, or when it is
 * certain that it never will. Here it is counted, and whatever else is to be said of a request that is over is said here.
 *
 * What is known then, of a request that is owed (sr_conn):
 *   status, 0: no response was made      nth on its connection, from 0: requests - 1
 *   bytes: sent, of them the head: head_bytes, if status (a head that was cut is smaller)
 *   times, if ready_at: all of it e->now - ready_at; with the application, if given_at: back_at - given_at, and it had
 *   waited given_at - ready_at
 *   the connection is kept: state FLUSH and not close_after
 *
 * The clock is that of e->now, read when the response was there, or when the socket took more: the system call that sends the
 * last byte is not in it.
 */
#include "engine.h"

typedef enum sr_over {
    SR_OVER_WHOLE,   /* the kernel has the last byte of the response */
    SR_OVER_ABORTED, /* the client does not get it, or not all of it */
    SR_OVER_TAKEN,   /* the application goes on alone with the socket */
} sr_over;

/* The head of the final response is made, and of so many bytes: for those who count. Before it is sent. */
static inline void sr_account_head(sr_conn *c, int status, size_t bytes)
{
    c->status = (uint32_t)status;
    c->head_bytes = (uint32_t)bytes;
}

void sr_account_over(sr_engine *e, sr_conn *c, sr_over how); /* does nothing when nothing is owed */
/* A complete request has waited for too long, which is counted. The status of its refusal */
int sr_account_waited(sr_engine *e);
/* The server itself answers, with these bytes that are sent next. To be called in the state that is refused */
void sr_account_refuse(sr_conn *c, int status, sr_bytes response);

#endif
