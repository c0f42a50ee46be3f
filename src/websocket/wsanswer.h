#ifndef SR_WSANSWER_H
#define SR_WSANSWER_H
/*
 * wsanswer: responses of the application to requests of events, as a protocol (sr_protocol) that they are
 * given to.
 *
 * A response with the content type of events is collected, and obeyed when it is complete. In OPENING any
 * other goes to the client as it comes. Later any other is an error, which closes the WebSocket
 * (SR_CLOSE_ERROR).
 */
#include "wscarrier.h"

/* sr_exchange.held of the errand is the WebSocket. */
extern const sr_protocol sr_wsanswer;

/*
 * What it means for the client that a worker does not answer this request: for the log. `otherwise`: if it is
 * for no open WebSocket.
 */
const char *sr_wsanswer_outcome(const sr_exchange *x, const char *otherwise);

#endif
