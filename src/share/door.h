#ifndef SR_DOOR_H
#define SR_DOOR_H
/*
 * door: how a worker and an edge find each other, and how descriptors pass between them.
 *
 * Each edge has a lobby: a listening unix socket that the supervisor has made, in the abstract namespace,
 * with a name that the kernel has chosen. A worker connects to it and says hello, with the number of its row.
 * From then on this connection is their line, and the first note that the edge sends on it brings the queue.
 * No worker has the listening socket, so none can shut it down for the others. The socket outlives its edge:
 * a worker that connects while there is none waits for the next one.
 *
 * Any process of the machine can connect. The edge turns away who does not say the key of the server at once
 * (sleepers.h), which only its own processes have in memory. The user is not asked for: an application may
 * become another one after its worker was forked, and has to find the next edge all the same. The kernel
 * tells who has sent a note, so that no process can speak for another, and a child that the application has
 * forked is recognised. The edge notices the end of a worker by a pidfd, even if another process holds the
 * line open.
 *
 * The supervisor has a line of its own to each edge. What comes there is trusted.
 *
 * Process: a line belongs to its worker. A child that the application forks must not use it.
 * Failure: errno. Descriptors that are received are close-on-exec and the receiver's; those beyond
 * SR_MESSAGE_FDS are closed.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SR_MESSAGE_FDS = 4,
#ifdef __APPLE__
    SR_DOOR_LEASE = 23, /* SIGIO: there are no leases */
#else
    SR_DOOR_LEASE = 43, /* the signal by which an edge hears that a lease is to be given back (net/lease.h) */
#endif
};

typedef enum sr_message_kind {
    SR_MESSAGE_HELLO = 1, /* worker, before all else: its row; number is the key */
    SR_MESSAGE_QUEUE,     /* edge: requests, replies, ring and bell; without descriptors: refused */
    SR_MESSAGE_ASK,       /* worker: asks for the files of its request */
    SR_MESSAGE_FILES,     /* edge: those files, as sr_slot.files says */
    SR_MESSAGE_FILE,      /* worker: the file of a reply, before the record that refers to it */
    SR_MESSAGE_TAKE,      /* worker: the application uses psgix.io */
    SR_MESSAGE_SOCKET, /* edge: the socket, and a file of bytes that were read ahead, if any; none: refused */
    /* of the supervisor, on its own line: */
    SR_MESSAGE_LOG,    /* the access log continues in this file */
    SR_MESSAGE_RETIRE, /* another edge takes over: pass connections on by this socket */
    SR_MESSAGE_LEGACY, /* take connections over: they come by this socket */
    SR_MESSAGE_ERRORS, /* the error log was opened anew: use this as STDERR */
    /*
     * to an edge: keys come by this socket; to the keeper: send them there; of the keeper to an edge: `bytes`
     * bytes in this file are a set of keys (transport/keyset.h)
     */
    SR_MESSAGE_KEYS,
    SR_MESSAGE_PUBLISH,  /* this file is an item (item.h) */
    SR_MESSAGE_CHANNELS, /* to this file goes which channels there are (edge/census.h) */
} sr_message_kind;

typedef struct sr_message {
    uint32_t layout; /* SR_QUEUE_LAYOUT; set by sr_door_send */
    uint32_t kind;
    uint32_t row;
    int32_t pid;     /* who has sent it, as the kernel says, on a line between worker and edge; else 0 */
    uint64_t number; /* of the request, or the key */
    uint32_t slot;
    uint32_t bytes; /* length of the file that was read ahead, with SR_MESSAGE_SOCKET */
} sr_message;

/* --- lobbies --- */

/* Makes one: *fd listens, is close-on-exec and non-blocking. Returns 0 or errno. */
int sr_door_lobby(int *fd);

/* The name by which workers find a lobby; 0 with errno: it is none. */
uint64_t sr_door_name(int lobby);

/*
 * Connects without waiting. Returns 0 or errno; EAGAIN: too many wait to be admitted; ECONNREFUSED: there is
 * no such lobby.
 */
int sr_door_enter(uint64_t name, int *line);

/*
 * Accepts the next connection. Returns 0 or errno; EAGAIN: there is none.
 */
int sr_door_admit(int lobby, int *line);

/* Whether a process of another user is at the other end. Such a process must send its hello at once. */
bool sr_door_stranger(int line);

/* --- lines --- */

/* Makes both ends of a line for the supervisor: close-on-exec, blocking. Returns 0 or errno. */
int sr_door_pair(int fds[2]);

/*
 * Sends a note. The descriptors stay the caller's. Returns 0 or errno; EAGAIN, unless `wait`: the other side
 * does not read.
 */
int sr_door_send(int line, sr_message *note, const int *fds, int n_fds, bool wait);

/*
 * Receives a note, and up to SR_MESSAGE_FDS descriptors into fds. Returns 0 or errno; EAGAIN, unless `wait`:
 * there is none; EPIPE: the other side is gone; EPROTO: what came is no note, or is of another layout.
 */
int sr_door_receive(int line, sr_message *note, int *fds, int *n_fds, bool wait);

/* Whether after this error no note can come; after others but EAGAIN one is there, and memory was short. */
static inline bool sr_door_is_over(int err)
{
    return err == EPIPE || err == ECONNRESET || err == EPROTO;
}

#endif
