#ifndef SR_LINGER_H
#define SR_LINGER_H
/*
 * linger: the end of a connection whose client may still be sending: this side is shut down, and what comes
 * is read and thrown away for a while (RFC 9112 9.6). Both functions may close and free the connection.
 */
#include "engine.h"

void sr_linger(sr_engine *e, sr_conn *c, sr_closed why); /* begins: shuts down this side */
void sr_linger_read(sr_engine *e, sr_conn *c);           /* in LINGER: bytes have come */

#endif
