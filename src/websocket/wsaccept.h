#ifndef SR_WSACCEPT_H
#define SR_WSACCEPT_H
/* wsaccept: a response of the application to OPEN that accepts the WebSocket, and what its fields say. */
#include "wscarrier.h"

/* Takes what the fields of ws->reply, to any request, say to the edge. NULL, or what is wrong: static. */
const char *sr_wsaccept_fields(sr_websocket *ws);

/*
 * Answers the opening request, with the other fields of ws->reply: it is open from now on. False: it is over
 * for the client.
 */
bool sr_wsaccept(sr_websocket *ws);

#endif
