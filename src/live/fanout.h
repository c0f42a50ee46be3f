#ifndef SR_FANOUT_H
#define SR_FANOUT_H
/* fanout: gives publications to subscribers, a part of them in each step of the loop. Called by live.c. */
#include "live.h"

void sr_fanout_step(sr_live *live);
void sr_fanout_free(sr_live *live); /* nobody gets what is left */

#endif
