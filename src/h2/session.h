#ifndef SR_H2_SESSION_H
#define SR_H2_SESSION_H
/* session: what goes on between a connection and nghttp2 (state.h): frames in, frames out. */
#include "state.h"

/* The connection speaks HTTP/2 from now on. False: no memory. */
bool sr_session_begin(sr_engine *e, sr_conn *c);

/* Ends its exchanges, which count as aborted, and frees it. */
void sr_session_free(sr_conn *c);

/*
 * Takes one frame, or the preface. Returns the bytes used; 0: it is not complete; -1: the connection can't go
 * on.
 */
ssize_t sr_session_feed(sr_session *s, sr_bytes in);

/*
 * Whether so many frames wait for a client that does not read that no more of its own are read, as each may
 * bring another.
 */
bool sr_session_full(const sr_session *s);

/* Sends the frames that wait. False: the connection is closed. */
bool sr_session_send(sr_engine *e, sr_conn *c);

#endif
