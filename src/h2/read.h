#ifndef SR_H2_READ_H
#define SR_H2_READ_H
/* read: frames from the socket, of which requests come one at a time. See sr_protocol. */
#include "session.h"

sr_intake sr_h2_read(sr_engine *e, sr_conn *c, sr_task *task);
void sr_h2_taken(sr_engine *e, sr_exchange *x);

#endif
