#ifndef SR_HOLD_H
#define SR_HOLD_H
/*
 * hold: responses that an application leaves with the edge (Grip-Hold, see http/grip.h).
 *
 *   stream     the head and what the application has sent are out. What is published goes behind it, and what
 *              keeps the connection alive, until an item says "close", the client goes, or the edge stops.
 *   response   nothing was sent. The first item with a response answers the request, or that of the
 *              application when Grip-Timeout is over.
 *
 * From sr_hold_begin to sr_hold_keep the worker sends its response, which goes through here
 * (sr_exchange.protocol). Its client has subscribed already, and may know: what is published meanwhile is
 * kept, up to --hold-buffer, and sent behind it. Behind that the exchange has no slot and no worker; a
 * connection with one exchange at a time is in SR_CONN_HELD.
 *
 * Owner: the exchange (sr_exchange.held).
 */
#include "../conn/protocol.h"
#include "live.h"

/*
 * The response of this exchange, of which nothing was sent, is to be held, as these lines of Grip fields say.
 * One that can't be held goes to its client as any other. Refuses the request with 503 when its client has
 * reached --hold-per-client, or for lack of memory: the exchange may be gone.
 */
void sr_hold_begin(sr_live *live, sr_exchange *x, sr_bytes lines);

/*
 * It was sent as far as the application goes, and has no slot any more: it is held from now on, or over. May
 * close the connection.
 */
void sr_hold_keep(sr_live *live, sr_exchange *x);

/* Whether it is held, or on its way to that. */
bool sr_hold_has(const sr_exchange *x);

/*
 * The connection, which was just taken over from another edge, goes on with what was packed there
 * (sr_subscriber_ops.pack), and gets what was published meanwhile. False: that is not possible, and the
 * caller closes it.
 */
bool sr_hold_adopt(sr_live *live, sr_conn *c, sr_bytes packed);

/* The exchange ends: frees what is kept of it here. */
void sr_hold_over(sr_live *live, sr_exchange *x);

/* An event of the connection, which is in SR_CONN_HELD. May close it. */
void sr_hold_event(sr_engine *e, sr_conn *c, uint32_t events);

/* Bytes that the response may keep in memory while it is held; a larger one is sent at once. */
enum { SR_HOLD_ANSWER_MAX = 256 * 1024 };

#endif
