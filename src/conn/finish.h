#ifndef SR_FINISH_H
#define SR_FINISH_H
/*
 * finish: the end of a response, and of its connection. All functions here may close and free the connection.
 */
#include "engine.h"

/*
 * The response is complete. The connection is kept if x->keep_alive; otherwise it is closed after the last
 * byte.
 */
void sr_finish(sr_engine *e, sr_exchange *x);

/*
 * The response can't be completed: ends the connection so that the client notices that something is missing.
 */
void sr_finish_cut(sr_engine *e, sr_exchange *x);

/* The application keeps the socket (psgix.io): drops the connection here without shutting it down. */
void sr_finish_detach(sr_engine *e, sr_exchange *x);

/*
 * Answers with an error of the server's own, then ends the connection. Its line in the access log is that of the request
 * at hand: a source that was offered (accesslog.h); else, before READY is over, the bytes at the start of c->in, or those that were
 * just read. In SERVING these are of the next request, so code that separates a request from its slot offers it first.
 */
void sr_finish_refuse(sr_engine *e, sr_conn *c, int status, sr_refusal why, bool is_head);

/* The same for a request that breaks `rule`, static, which its parser does not know. NULL: none but those of the parser. */
void sr_finish_refuse_by(sr_engine *e, sr_conn *c, int status, sr_refusal why, bool is_head,
                         const char *rule);

/* Shuts down this side and lingers (RFC 9112 9.6). */
void sr_finish_close(sr_engine *e, sr_conn *c, sr_closed why);
void sr_finish_lingering(sr_engine *e, sr_conn *c); /* in LINGER: bytes have come */

/* In FLUSH: the socket accepts more bytes. */
void sr_finish_writable(sr_engine *e, sr_conn *c);

/*
 * In SERVING: sends what is pending of a response of which more will follow. False: the connection is closed.
 */
bool sr_finish_pending(sr_engine *e, sr_conn *c);

#endif
