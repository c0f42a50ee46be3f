#ifndef SR_PUT_H
#define SR_PUT_H
/*
 * put: the head of a response, and its body in its framing, to the socket. See sr_protocol; nothing here
 * closes a connection.
 */
#include "../conn/protocol.h"

sr_response_error sr_h1_head(sr_engine *e, sr_exchange *x, const sr_head *h, sr_bytes *made);
void sr_h1_piece(sr_engine *e, sr_exchange *x, sr_bytes body, bool last);
void sr_h1_file(sr_engine *e, sr_exchange *x, const sr_content *content);

/*
 * Sends 100 (Continue), RFC 9110 10.1.1. What a full socket does not accept is sent before the response,
 * since a part must not be left out.
 */
void sr_h1_continue(sr_engine *e, sr_exchange *x);

#endif
