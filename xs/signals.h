#ifndef SIRIUS_SIGNALS_H
#define SIRIUS_SIGNALS_H
/*
 * signals: between perl and the handlers of signals. One that comes while a worker sleeps wakes it, and none
 * jumps out of the server.
 */
#include "perlapi.h"

void sirius_signals_boot(pTHX); /* once, and before the application may set a handler */

#endif
