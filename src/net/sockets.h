#ifndef SR_SOCKETS_H
#define SR_SOCKETS_H
/*
 * sockets: makes sockets that no program inherits. Any thread. Failure: -1 with errno.
 */
#include <sys/socket.h>

/*
 * Flags that not all systems have. For the first, what is sent may be in more packets; for the second,
 * sockets have SO_NOSIGPIPE.
 */
#ifndef MSG_MORE
#define MSG_MORE 0
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

/* A unix socket, close-on-exec and non-blocking. */
int sr_sockets_unix(int type);

/* As accept: close-on-exec and non-blocking. */
int sr_sockets_accept(int listener, struct sockaddr *from, socklen_t *len);

/* Both ends of a pair of unix sockets, close-on-exec and blocking. 0. */
int sr_sockets_pair(int type, int fds[2]);

/* Both ends of a pipe, close-on-exec and blocking: the first is read. 0. */
int sr_sockets_pipe(int fds[2]);

/*
 * From now on the socket is reported as readable once it has this many bytes, or its end: for one that was
 * looked at and not read, which a loop that knows no EPOLLET would report at once again. Does nothing on
 * Linux.
 */
void sr_sockets_readable_at(int fd, size_t bytes);

/* Sends up to 16 messages. Returns how many were sent before one failed, or -1 if the first has. */
int sr_sockets_send(int fd, const struct msghdr *messages, unsigned n, int flags);

#endif
