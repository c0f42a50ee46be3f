#ifndef SIRIUS_WIRE_H
#define SIRIUS_WIRE_H
/*
 * wire: a response as records to the edge (src/worker), which has the connection. The response is that of s->turn. Inside.
 */
#include "sirius.h"

/* Begins a head: its fields are to be put into s->head, which is empty. Whatever the client speaks, the edge knows. */
static inline sr_response_error wire_head_begin(sirius *s, int status)
{
    return sr_response_begin(&s->turn.response, status, 1, s->turn.request->is_head, true);
}

/* The fields are in s->head; what the server adds does the edge. NULL, or what is wrong: static */
const char *wire_head_end(sirius *s, uint64_t known);

void wire_whole(sirius *s, const struct iovec *body, int n); /* head and all of the body */
void wire_head(sirius *s, bool now);                         /* the head alone: a stream follows */
/* The head, and a file behind it, which is taken over. */
void wire_file(sirius *s, int fd, off_t offset, uint64_t length);
/* Of a stream: bytes as the application gave them, not more than are announced. `wait`: not far ahead of its client. */
void wire_data(sirius *s, sr_bytes bytes, bool wait);
void wire_end(sirius *s);                    /* of a stream, behind its last byte */
void wire_interim(sirius *s, sr_bytes text); /* a whole interim head */
void wire_finish(sirius *s);                 /* by the phase of the turn: kept, cut, or the application's */

#endif
