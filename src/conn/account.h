#ifndef SR_ACCOUNT_H
#define SR_ACCOUNT_H
/*
 * account: counts and logs each request exactly once, when it is over: when the kernel has accepted the last
 * byte of its response, or when it is certain that it never will.
 *
 * A request is owed (sr_exchange.owed) from the moment it is complete, or refused, until it is over. What is
 * known of it then:
 *   status      0: no response was made
 *   sent        bytes on the wire, of which head_bytes are the head (fewer if the head itself was cut)
 *   requests    its number on the connection, from 1
 *   ready_at    when it was complete; 0: it was refused before that. The whole of it took e->now - ready_at
 *   given_at    when the application was called; 0: it was not. The request waited given_at - ready_at, and
 *               the application took back_at - given_at
 *   state       SR_CONN_FLUSH without close_after: the connection is kept
 *
 * e->now was read when the response was ready, or when the socket accepted more, so the system call that
 * sends the last byte is not included.
 *
 * Called by: the protocol, connection and relay of this folder. Failure: none.
 */
#include "engine.h"

typedef enum sr_over {
    SR_OVER_WHOLE,   /* the kernel has the last byte of the response */
    SR_OVER_ABORTED, /* the client does not get the response, or not all of it */
    SR_OVER_TAKEN,   /* the application continues on its own with the socket (psgix.io) */
} sr_over;

/* The head of the final response was made and has `bytes` bytes. Call it before the head is sent. */
static inline void sr_account_head(sr_exchange *x, int status, size_t bytes)
{
    x->status = (uint16_t)status;
    x->head_bytes = (uint32_t)bytes;
}

/* The exchange is over. Does nothing unless it is owed; x may be NULL. */
void sr_account_over(sr_engine *e, sr_exchange *x, sr_over how);

/* Why a request is refused with this status, if its parser, its body or a lack of memory has decided that. */
sr_refusal sr_account_fault(int status);

sr_refusal sr_account_lack(int err); /* likewise for lack of what `err` says: EMFILE, ENOMEM */

/*
 * A complete request has waited too long for a worker: counts it, and returns why to refuse it, with the
 * status e->deadlines.waited_too_long.
 */
sr_refusal sr_account_waited(sr_engine *e);

/*
 * The server answers by itself, with a head of so many bytes, which is sent next. Call it in the state that
 * is refused.
 */
void sr_account_refuse(sr_exchange *x, int status, sr_refusal why, size_t head);

#endif
