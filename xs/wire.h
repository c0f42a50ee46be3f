#ifndef SIRIUS_WIRE_H
#define SIRIUS_WIRE_H
/*
 * wire: where a response goes: to the connection, which the engine of this very process has, or as records to the edge
 * (src/worker), which has all connections. The files around ask here and know neither.
 *
 * The response is that of s->turn. With the helm, where there is one.
 */
#include "sirius.h"

/* Does this process have the connections itself? */
static inline bool wire_is_edge(const sirius *s)
{
    return s->worker.n_edges != 0;
}

/* In this process nothing may be said or served: it is a child that the application has forked. */
static inline bool wire_forked(const sirius *s)
{
    return wire_is_edge(s) ? s->forked : sr_engine_forked(s->engine);
}

bool wire_keeps(const sirius *s); /* as far as this process knows, the connection may be kept */

/* The head in s->head: begun behind its status line, and whole but for what the server adds. False: why, static */
const char *wire_head_end(sirius *s, uint64_t known);

void wire_whole(sirius *s, struct iovec *iov, int n, bool last); /* head in iov[0], then all of the body */
void wire_head(sirius *s, bool now);                             /* the head alone: a stream follows */
/* The head, and a file behind it, which is taken over. */
void wire_file(sirius *s, int fd, off_t offset, uint64_t length);
/* Of a stream: bytes as the application gave them, not more than are announced. `wait`: not far ahead of its client. */
void wire_data(sirius *s, sr_bytes bytes, bool wait);
void wire_end(sirius *s);                      /* of a stream, behind its last byte */
void wire_interim(sirius *s, sr_bytes text);   /* a whole interim head */
void wire_finish(pTHX_ sirius *s, sr_conn *c); /* by the phase of the turn: kept, cut, or the application's */

#endif
