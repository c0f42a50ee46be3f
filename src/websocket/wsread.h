#ifndef SR_WSREAD_H
#define SR_WSREAD_H
/*
 * wsread: what a WebSocket reads from its client: messages become events for the application, PING is
 * answered here. A client that breaks a rule is closed with the code for that. All functions may end the
 * WebSocket for its client.
 */
#include "wscarrier.h"

/* Whether so much waits for the application that nothing more is read, and behind CLOSE nothing at all. */
bool sr_wsread_full(const sr_websocket *ws);

/*
 * Closes for a rule that the client has broken, or as the server ends, once nothing is left to be answered
 * that it has sent before.
 */
void sr_wsread_broken(sr_websocket *ws);

/* Takes bytes of the client, and changes them. False: it is over for the client. */
bool sr_wsread_bytes(sr_websocket *ws, char *at, size_t len);

/* Reads from the socket, as much as is there, but not more than others can wait for. */
void sr_wsread_socket(sr_websocket *ws);

/* The events wait no longer: reads again. */
void sr_wsread_resume(sr_websocket *ws);

#endif
