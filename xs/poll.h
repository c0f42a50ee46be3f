#ifndef SIRIUS_POLL_H
#define SIRIUS_POLL_H
/* poll: the wait of a process of Perl. */
#include "sirius.h"

/*
 * Sleeps until a descriptor has one of its events (of poll(2); POLLHUP and POLLERR always count), one of the
 * signals comes, which are blocked otherwise, or the seconds are over; a negative number is no limit. The
 * handlers of these signals have been called when it returns.
 */
void sirius_poll(pTHX_ AV *descriptors, AV *events, NV seconds, AV *signals);

#endif
