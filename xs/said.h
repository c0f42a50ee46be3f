#ifndef SIRIUS_SAID_H
#define SIRIUS_SAID_H
/*
 * said: what the application writes to the log about its request. A framework catches what the application
 * dies of, writes it there and answers 500, so the server sees no exception.
 *
 * Thread: that of perl. Bounded: one line is kept.
 */
#include "perlapi.h"

#include "base/bytes.h"

/*
 * The application has written this. `printed`: it was not perl that has warned. Does nothing outside of a
 * request.
 */
void sirius_said_hear(pTHX_ const char *at, size_t len, bool printed);

/*
 * The line that tells most of the request at hand: the last that was printed and names a place, " line 42";
 * else the last that perl has warned of; else any. len 0: it has written nothing. Valid until the next write.
 */
sr_bytes sirius_said(const sirius *s);

#endif
