#ifndef SR_H1_REFUSE_H
#define SR_H1_REFUSE_H
/*
 * refuse: answers for the server, whatever of the request has come. See sr_protocol; may close and free the
 * connection.
 */
#include "../conn/protocol.h"

void sr_h1_refuse(sr_engine *e, sr_exchange *x, int status, sr_refusal why, const char *rule);

#endif
