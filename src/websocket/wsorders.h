#ifndef SR_WSORDERS_H
#define SR_WSORDERS_H
/*
 * wsorders: what the events of a response have the edge do: messages for the client, an end, and control
 * messages of GRIP. May end the WebSocket for its client.
 */
#include "wscarrier.h"

/* Those in `in`, behind OPEN. What they send goes out together; if one is invalid, nothing does. */
void sr_wsorders(sr_websocket *ws, sr_bytes in);

#endif
