#ifndef SR_H2_H
#define SR_H2_H
/*
 * h2: HTTP/2 on a connection (RFC 9113): many exchanges at a time, each a stream. session knows the frames,
 * read takes requests from them, request makes a request of fields, put has responses sent, refuse answers
 * for the server.
 */
#include "../conn/protocol.h"

extern const sr_protocol sr_h2;

/* Whether libnghttp2 was there at build (SR_HTTP2 is defined). If not, sr_h2 is of no use. */
bool sr_h2_built(void);

#endif
