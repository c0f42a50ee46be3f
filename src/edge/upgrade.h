#ifndef SR_UPGRADE_H
#define SR_UPGRADE_H
/*
 * upgrade: requests that open a WebSocket, and what of a request only the edge may say to an application
 * (--hold): no client may send what looks like an event, not even through a proxy; nor set the fields of
 * events, unless it is a trusted proxy.
 */
#include "../conn/intake.h"
#include "edge.h"

int sr_upgrade_open(sr_edge *ed, const sr_setup *s); /* 0 or errno. The caller sets sr_websockets.ask */
void sr_upgrade_stop(sr_edge *ed);  /* no request is answered any more; before the engine is freed */
void sr_upgrade_close(sr_edge *ed); /* behind it */

/* Removes those fields. True: the request was answered, or is that of a WebSocket now. */
bool sr_upgrade_answer(sr_edge *ed, sr_task *task);

#endif
