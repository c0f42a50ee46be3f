#ifndef SR_WSMOVE_H
#define SR_WSMOVE_H
/*
 * wsmove: a WebSocket between two messages as bytes, for the edge that takes its connection over
 * (live/move.h). The application has no request of it, and nothing waits for either side. Called by
 * websocket.c.
 */
#include "websocket.h"

/* False: not now, or no memory. */
bool sr_wsmove_pack(const sr_websocket *ws, sr_buffer *out);

/*
 * For one that was just made for this exchange, and has begun as a subscriber. False: not well-formed, or no
 * memory.
 */
bool sr_wsmove_unpack(sr_websocket *ws, sr_bytes *packed);

#endif
