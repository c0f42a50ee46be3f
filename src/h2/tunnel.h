#ifndef SR_H2_TUNNEL_H
#define SR_H2_TUNNEL_H
/*
 * tunnel: psgix.io of a stream that was opened by extended CONNECT (RFC 8441). The application has one end of
 * a pair of sockets (conn/pump.h), in which it answers as over HTTP/1.1: the head that it writes there
 * becomes that of the response, 101 as 200, and all behind it is the body. What the client sends goes there
 * as well.
 *
 * What may wait is bounded in both directions: what the application does not take, by the window of the
 * stream, whose credit returns when it was taken; what the client does not take, by SR_PUMP_BYTES and what
 * the pair holds. That window is of 64 KiB, so that all streams of a connection together need not keep its
 * credit: one that nobody reads would stop the others. All tunnels have SR_OUTPUT_TOTAL, and those of a
 * connection no more of that than is left: what brings more is reset. So clients that fill it, however many,
 * leave as much to one that comes as each of them has.
 *
 * As long as a worker has the request, an end of the application's side means nothing yet (conn/relay.h). If
 * it answers in the ordinary way without having written, that is the response, but for 2xx, which would open
 * the tunnel: 501 comes in its place. What it answers when it has written is thrown away.
 */
#include "state.h"

/* --- of sr_protocol --- */

sr_response_error sr_tunnel_head(sr_engine *e, sr_exchange *x, const sr_head *h, sr_bytes *made);
void sr_tunnel_piece(sr_engine *e, sr_exchange *x, sr_bytes body, bool last);
void sr_tunnel_file(sr_engine *e, sr_exchange *x, const sr_content *content);
void sr_tunnel_end(sr_engine *e, sr_exchange *x);
int sr_tunnel_lend(sr_engine *e, sr_exchange *x, int *theirs);
bool sr_tunnel_spoken(sr_engine *e, sr_exchange *x);
void sr_tunnel_pumped(sr_engine *e, sr_exchange *x);
void sr_tunnel_detach(sr_engine *e, sr_exchange *x);

/* --- of the session --- */

/* Whether what comes on this stream is for an application that may take it, or has. */
static inline bool sr_tunnel_is(const sr_h2_stream *st)
{
    return st->exchange && st->exchange->is_tunnel && !st->exchange->held && st->taken &&
           (!st->answered || st->pump);
}

/* Bytes of the client, or its end (st->ended). Cares for the credit. */
void sr_tunnel_came(sr_h2_stream *st, sr_bytes bytes);

#endif
