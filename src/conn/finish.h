#ifndef SR_FINISH_H
#define SR_FINISH_H
/*
 * finish: the end of a response, and of its connection. The functions may close and free the connection.
 */
#include "engine.h"

/* The response is complete: the connection is kept when conn->keep_alive, else closed after its last byte. */
void sr_finish(sr_engine *e, sr_conn *c);

/* The response can't be completed: cut the connection so that the peer sees it. */
void sr_finish_cut(sr_engine *e, sr_conn *c);

/* The application keeps the socket (psgix.io): forget it here without shutting it down. */
void sr_finish_detach(sr_engine *e, sr_conn *c);

/* The server's own answer to what can't be served, then the end of the connection. */
void sr_finish_refuse(sr_engine *e, sr_conn *c, int status, bool is_head);

/* Politely: shut down our side and linger (RFC 9112 9.6). */
void sr_finish_close(sr_engine *e, sr_conn *c, sr_closed why);
void sr_finish_lingering(sr_engine *e, sr_conn *c); /* bytes have come meanwhile */

/* In FLUSH: the socket takes more. */
void sr_finish_writable(sr_engine *e, sr_conn *c);
/* In SERVING: flushes what is pending of a response that more will follow. False: the connection is closed */
bool sr_finish_pending(sr_engine *e, sr_conn *c);

#endif
