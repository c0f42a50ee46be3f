#ifndef SIRIUS_HOLD_H
#define SIRIUS_HOLD_H
/*
 * hold: the loop returns to Perl of the server for a moment, which has no eval around it: a handler of the
 * application that died there would end the server. So its signals wait until the loop goes on. Those that
 * the server handles itself do not.
 */
#include "inside.h"

void sirius_hold(pTHX_ sirius_inside *i);
void sirius_let_go(pTHX_ sirius_inside *i); /* does nothing if they are not held */

#endif
