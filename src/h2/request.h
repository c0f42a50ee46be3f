#ifndef SR_H2_REQUEST_H
#define SR_H2_REQUEST_H
/*
 * request: of the fields of a header block, a request as the parser of HTTP/1.1 would have made it, by the
 * same rules: its text lies in sr_arrivals.head, and the spans of sr_request point there. What is refused
 * gets the same status; what is malformed in HTTP/2 only (RFC 9113 8.1.1) was refused by nghttp2 before.
 */
#include "state.h"

void sr_head_begin(sr_session *s); /* of a header block */
void sr_head_free(sr_session *s);  /* what it is made of; no block is being read */
void sr_head_field(sr_session *s, sr_bytes name, sr_bytes value);

/* It is complete. `ended`: no body follows. Sets s->complete, or begins to collect the body, or refuses. */
void sr_head_done(sr_session *s, sr_h2_stream *st, bool ended);

void sr_body_arrived(sr_session *s, sr_h2_stream *st, sr_bytes data);
void sr_body_over(sr_session *s, sr_h2_stream *st);

/* The task of s->complete, which is reset. */
void sr_request_give(sr_session *s, sr_task *task);

#endif
