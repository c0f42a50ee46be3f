#ifndef SR_TROUBLE_H
#define SR_TROUBLE_H
/*
 * trouble: what an operator is to be told, and which only an edge sees. It is counted in the row; the supervisor, which
 * sleeps, is woken by one message until it has looked (lib/Sirius/Watch.pm), so a flood of refusals costs a count each.
 */
#include "engine.h"

void sr_trouble_count(sr_engine *e, sr_trouble what, uint64_t by, int err); /* err: 0, or why */
void sr_trouble_refused(sr_engine *e, const sr_conn *c, int status);        /* in the state that is refused */
void sr_trouble_ring(sr_engine *e); /* it may be too much: the supervisor is to look */

#endif
