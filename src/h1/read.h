#ifndef SR_READ_H
#define SR_READ_H
/*
 * read: takes requests from a socket until one is complete. See sr_protocol.
 *
 * Closing: sr_h1_read may close and free the connection.
 * Failure: a request that is malformed, too large or too slow is refused, and its connection ends.
 *
 * On a unix socket, the last byte that has come with an HTTP/1.0 request is used, but left in the socket
 * (c->held) until the response is complete. If the connection is closed before, or this process is killed,
 * the peer gets ECONNRESET behind what was sent, not an end of file that would be the end of a complete
 * response: HTTP/1.0 has no chunks, and a unix socket no other reset. sr_conn_release reads the byte. Where
 * bytes follow a request of any version that was looked at, the last of them is left for the request that
 * they may be. A request of 1.0 that was read without that, which only the first on the unix sockets of this
 * process can be, is not served: its connection is closed.
 */
#include "../conn/protocol.h"

sr_intake sr_h1_read(sr_engine *e, sr_conn *c, sr_task *task);
void sr_h1_taken(sr_engine *e, sr_exchange *x);

#endif
