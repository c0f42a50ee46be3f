#ifndef SR_MOVE_H
#define SR_MOVE_H
/*
 * move: what is held as bytes, for the edge that takes its connection over (edge/heir.c). Both edges are of
 * the same build, and run on the same clock. Who holds something packs its own part between the exchange and
 * the subscriptions.
 *
 * Trust: what does not add up is nothing. Called by hold.c, and by WebSockets.
 */
#include "held.h"

/* --- the old edge --- */

/* Whether nothing is on its way to this subscriber. */
bool sr_move_quiet(const sr_subscriber *s);

/* Append the exchange, with the values of its log line, and the subscriptions. False: no memory. */
bool sr_move_pack_exchange(const sr_engine *e, const sr_exchange *x, sr_buffer *out);
bool sr_move_pack_subscriptions(const sr_subscriber *s, sr_buffer *out);

/* A held response. False: not now, or no memory. */
bool sr_move_pack(sr_live *live, const sr_hold *h, sr_buffer *out);

/* --- the new edge --- */

/* Take the next bytes: where they lie, or a copy, for a struct. False: there are not so many. */
bool sr_move_cut(sr_bytes *from, size_t len, sr_bytes *out);
bool sr_move_cut_struct(sr_bytes *from, void *to, size_t len);

/*
 * For an exchange that has just begun; for a subscriber that has. Take their part of `packed`. False: not
 * well-formed, or no memory.
 */
bool sr_move_unpack_exchange(sr_engine *e, sr_exchange *x, sr_bytes *packed);
bool sr_move_unpack_subscriptions(sr_live *live, sr_subscriber *s, sr_bytes *packed);

/* A held response again. NULL: likewise; what was made ends with the exchange. `ops`: by sr_held_kind. */
sr_hold *sr_move_unpack(sr_live *live, sr_exchange *x, sr_bytes packed, const sr_subscriber_ops *ops);

#endif
