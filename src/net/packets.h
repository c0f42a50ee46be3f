#ifndef SR_PACKETS_H
#define SR_PACKETS_H
/*
 * packets: pairs of unix sockets on which messages with descriptors stay apart, and the end of one end is
 * seen at the other. Linux has SOCK_SEQPACKET. macOS has not, so a portable build sends each message behind
 * its length on a stream: there one process at a time may receive at an end, and send there what is longer
 * than 1 KiB. An end that does not block waits for nothing, whatever the other one does: a message is
 * received when all of it is there.
 * Thread: any. Failure: errno.
 */
#include <stddef.h>
#include <sys/types.h>

enum { SR_PACKETS_MAX = 192 * 1024 }; /* bytes of a message */

/* Both ends, close-on-exec and blocking: the caller's. 0, or -1. */
int sr_packets_pair(int fds[2]);

/*
 * Sends a message of at least one byte whole, or not at all: 0, or -1. Without room it waits where the socket
 * blocks, else that is EAGAIN. EMSGSIZE: it is too long. No SIGPIPE, and a signal does not end it. The
 * descriptors, SR_PASSING_MAX at most, stay the caller's.
 */
int sr_packets_send(int end, const void *at, size_t len, const int *fds, int n_fds);

/*
 * The next message: its bytes, 0 at the end of the other end, or -1. What is there of a longer one than `len`
 * is lost. *n_fds as in sr_passing_receive.
 */
ssize_t sr_packets_receive(int end, void *at, size_t len, int *fds, int *n_fds);

#endif
