#ifndef SR_DOOR_H
#define SR_DOOR_H
/*
 * door: how a worker and an edge meet, and how descriptors pass between them.
 *
 * Each edge has a lobby: a listening socket that the supervisor has made, with a name that the kernel has chosen in the abstract
 * namespace. A worker connects to it and says hello, with its row; from then on the two have that connection as a line of their
 * own, and the edge's first note on it brings the queue. No worker holds the listening socket, so none can shut it down for the
 * others. It outlives its edge: who connects while there is none waits for the next one. Any process of the machine can connect;
 * those of another user are turned away here, others without the key by the edge (sleepers.h).
 * Who has sent a note the kernel says, not the note: so nobody can speak for another process, and a child that the
 * application has forked is known as one. The edge notices the worker's end by a pidfd, whoever else holds the line open.
 *
 * The supervisor has a line of its own to each edge; what comes there is believed.
 *
 * Process: a line belongs to its worker, and a child that the application forks must not use it.
 * Failure: errno. Who receives gets descriptors that are close-on-exec and his own; too many of them are closed.
 */
#include <stdbool.h>
#include <stdint.h>

enum { SR_MESSAGE_FDS = 4 };

typedef enum sr_message_kind {
    SR_MESSAGE_HELLO = 1, /* worker, first of all: row; number is the key */
    SR_MESSAGE_QUEUE,     /* edge: requests, replies, ring, bell; none: refused */
    SR_MESSAGE_ASK,       /* worker: the files of its request */
    SR_MESSAGE_FILES,     /* edge: as the slot says which */
    SR_MESSAGE_FILE,      /* worker: the file of a reply, before the record that speaks of it */
    SR_MESSAGE_TAKE,      /* worker: the application uses psgix.io */
    SR_MESSAGE_SOCKET, /* edge: the client's socket, and a file of bytes that were read ahead, if any; none: refused */
    /* supervisor, on its own line: */
    SR_MESSAGE_LOG,    /* the access log goes on in this file */
    SR_MESSAGE_RETIRE, /* another edge has taken its place: connections are passed on by this pair */
    SR_MESSAGE_LEGACY, /* it has taken another's place, whose connections come by this pair */
    SR_MESSAGE_ERRORS, /* the error log was opened anew: this is STDERR now */
} sr_message_kind;

typedef struct sr_message {
    uint32_t layout; /* SR_QUEUE_LAYOUT */
    uint32_t kind;
    uint32_t row;
    int32_t pid; /* who has sent it, as the kernel says, on a line between worker and edge; else 0 */
    uint64_t number;
    uint32_t slot;
    uint32_t bytes; /* of the file that was passed, where one was */
} sr_message;

int sr_door_lobby(int *fd); /* 0 or errno. It listens; close-on-exec, non-blocking */
/* What workers know a lobby by. 0: it is none (errno) */
uint64_t sr_door_name(int lobby);
/* Connects, and does not wait. 0 or errno (EAGAIN: too many do so right now; ECONNREFUSED: there is no such lobby) */
int sr_door_enter(uint64_t name, int *line);
/* Who has connected next. 0 or errno (EAGAIN: nobody; EPERM: a stranger, who was turned away: there may be more) */
int sr_door_admit(int lobby, int *line);

int sr_door_pair(int fds[2]); /* 0 or errno. Close-on-exec; blocking */

/* 0 or errno (EAGAIN: the other side does not read). The descriptors stay the caller's. */
int sr_door_send(int line, sr_message *note, const int *fds, int n_fds, bool wait);
/*
 * 0 or errno; EPIPE: the other side is gone, or wrote nothing; EPROTO: no note, or of another layout. fds has room for
 * SR_MESSAGE_FDS.
 */
int sr_door_receive(int line, sr_message *note, int *fds, int *n_fds, bool wait);

#endif
