#ifndef SR_H2_REFUSE_H
#define SR_H2_REFUSE_H
/* refuse: answers of the server's own, on a stream. See sr_protocol.refuse; the connection goes on. */
#include "state.h"

void sr_h2_refuse(sr_engine *e, sr_exchange *x, int status, sr_refusal why, const char *rule);

#endif
