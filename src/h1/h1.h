#ifndef SR_H1_H
#define SR_H1_H
/*
 * h1: HTTP/1.x on a connection (RFC 9112): one exchange at a time, and responses in the order of their
 * requests. read takes requests from the socket, decode their bodies; put makes heads and frames bodies; end
 * keeps or closes the connection; refuse answers for the server. http1/ has the grammar.
 */
#include "../conn/protocol.h"

extern const sr_protocol sr_h1;

#endif
