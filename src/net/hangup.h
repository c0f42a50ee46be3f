#ifndef SR_HANGUP_H
#define SR_HANGUP_H
/* hangup: a look at one socket, whether its peer is still there. Any thread. */
#include <poll.h>

/* As poll(2) has it on Linux and FreeBSD: the peer has ended its side. */
#ifndef POLLRDHUP
#define POLLRDHUP 0x2000
#endif

/* What poll(2) says of it now, without waiting: POLLRDHUP, POLLHUP, POLLERR, POLLNVAL. */
short sr_hangup(int fd);

#endif
