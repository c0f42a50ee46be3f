#ifndef SIRIUS_LOADING_H
#define SIRIUS_LOADING_H
/* loading: while the application is loaded. */
#include "sirius.h"

/*
 * Between begin and end the application is loaded. After `limit` seconds (0: no limit) the process ends with
 * status 1 and a line on STDERR; after `soon` seconds a line says that loading takes long. A signal that asks
 * for a stop ends the process with stopped_status. `end` returns a new array of the numbers of other signals
 * that came; also in a child that was forked.
 */
void sirius_loading_begin(pTHX_ double limit, double soon, int stopped_status);
AV *sirius_loading_end(pTHX);

#endif
