#ifndef SR_END_H
#define SR_END_H
/*
 * end: the end of a response, and what becomes of its connection. See sr_protocol; all functions here may
 * close and free the connection.
 */
#include "../conn/protocol.h"

/*
 * False as well when the response is over, and the connection may be kept: then it is not the caller's any
 * more.
 */
bool sr_h1_writable(sr_engine *e, sr_conn *c);

sr_output *sr_h1_output(const sr_exchange *x);
bool sr_h1_settle(sr_engine *e, sr_exchange *x);
void sr_h1_end(sr_engine *e, sr_exchange *x);
void sr_h1_cut(sr_engine *e, sr_exchange *x);

/* All of the response was given: sends what is pending, then closes or keeps the connection. */
void sr_h1_finish(sr_engine *e, sr_conn *c, bool close_after);

#endif
