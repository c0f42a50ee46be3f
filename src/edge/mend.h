#ifndef SR_MEND_H
#define SR_MEND_H
/*
 * mend: repairs what a worker may have spoiled in the memory that all workers can write, and finds what it
 * should have said.
 *
 * The claims of requests and the bits of who has replied, who sleeps and which edges there are lie in such
 * memory. A worker may be stopped or killed between two writes, or write where it must not. So while there
 * are requests, all of it is looked through every 20 ms, and less often, down to every 640 ms, while nothing
 * is found and nothing waits.
 */
#include "edge.h"

/* When the next look is due, monotonic ns; INT64_MAX: there is no request. */
int64_t sr_mend_at(const sr_edge *ed);
/* In each step of the loop: looks, if that is due. May close and free connections. */
void sr_mend(sr_edge *ed);

#endif
