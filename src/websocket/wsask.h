#ifndef SR_WSASK_H
#define SR_WSASK_H
/* wsask: sends the events of a WebSocket to the application, as a request. */
#include "websocket.h"

/* Those that wait now; no errand is under way. May end the WebSocket for its client. */
void sr_wsask(sr_websocket *ws);

#endif
