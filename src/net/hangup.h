#ifndef SR_HANGUP_H
#define SR_HANGUP_H
/* hangup: a look at one socket, whether its peer is still there. Any thread. */
#include <poll.h>

#include <stdbool.h>

/*
 * As poll(2) has it on Linux and FreeBSD: the peer has ended its side. SR_NO_POLLRDHUP: as if it had not, for
 * tests.
 */
#if defined POLLRDHUP && !defined SR_NO_POLLRDHUP
#define SR_HANGUP_BY_POLL true
#else
#undef POLLRDHUP
#define POLLRDHUP 0x2000
#define SR_HANGUP_BY_POLL false
#endif

/* What poll(2) says of it now, without waiting: POLLRDHUP, POLLHUP, POLLERR, POLLNVAL. */
short sr_hangup(int fd);

#ifdef SR_PORTABLE
/* Whether the next thing to be read of the socket is its end: what poll(2) without POLLRDHUP does not say. */
bool sr_hangup_peek(int fd);
#endif

#endif
