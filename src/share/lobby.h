#ifndef SR_LOBBY_H
#define SR_LOBBY_H
/*
 * lobby: the name of the listening socket of an edge, and who is at the other end of a line: what door.c
 * needs of the system. Linux has names without a file (unix(7), autobind), and says who has sent a message.
 * Elsewhere the name is that of a file in /tmp, which sr_lobby_remove removes, and the sender itself says who
 * it is.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#ifdef SR_PORTABLE
#define SR_LOBBY_SENDERS false
#else
#define SR_LOBBY_SENDERS true /* whether the kernel says who has sent a note */
#endif

/*
 * Messages stay apart. macOS has no such sockets: there a note is never taken in part, as it is smaller than
 * what must be free before a unix socket is written to (SO_SNDLOWAT).
 */
#ifdef __APPLE__
#define SR_LOBBY_TYPE SOCK_STREAM
#else
#define SR_LOBBY_TYPE SOCK_SEQPACKET
#endif

/* Gives a socket a name that no other has. 0, or -1 with errno. */
int sr_lobby_bind(int fd);

/* The name in this address; 0: it has none. */
uint64_t sr_lobby_name(const struct sockaddr_un *at, socklen_t len);

/* The address of this name, and its length. */
socklen_t sr_lobby_address(uint64_t name, struct sockaddr_un *at);

/* Removes what stands for the name. Nobody finds that lobby any more. */
void sr_lobby_remove(uint64_t name);

/* From now on the kernel reports the sender of each message. 0 or errno. */
int sr_lobby_name_senders(int line);

/* Which user has the other end. False: unknown. */
bool sr_lobby_user(int line, uid_t *user);

#endif
