#ifndef SR_EXCHANGE_H
#define SR_EXCHANGE_H
/*
 * exchange: the queue of connections that wait for a worker: one AF_UNIX SOCK_SEQPACKET pair, shared by all
 * processes of a server and held open by the supervisor, so that it outlives any worker.
 *
 * A message is one or more parcels, their descriptors (SCM_RIGHTS), and, for a single parcel, bytes that were
 * read. The kernel keeps them in order, hands each to exactly one taker, and closes the descriptors of a
 * message nobody took when the last end of the pair is closed.
 * Its room is the send buffer of the socket, about 270 small messages by default: a full exchange is a normal
 * answer.
 * Thread: any, each call is one system call. Process: any that has inherited the pair.
 */
#include "../base/bytes.h"
#include "peer.h"

enum {
    SR_PARCEL_FORMAT = 1, /* see sr_parcel; never 0 */
    SR_PARCELS_MAX = 64,  /* of one message; the kernel allows 253 descriptors */
    SR_PARCEL_BYTES_MAX =
        128 * 1024, /* that travel with a connection; the kernel's default limit is 208 KiB */
};

typedef struct sr_exchange {
    int give, take; /* not blocking, close-on-exec; -1: there is none */
} sr_exchange;

typedef enum sr_parcel_body { SR_PARCEL_RAW, SR_PARCEL_DECODED, SR_PARCEL_FILE } sr_parcel_body;

/*
 * One connection. The struct is the format of a message, and workers of two builds share an exchange while one
 * replaces the other: whoever changes what a parcel says counts SR_PARCEL_FORMAT up. A taker refuses what is of
 * another format. It should not come to that: the layout of the scoreboard is another one then, too, so that the new
 * generation does not start beside the old.
 */
typedef struct sr_parcel {
    uint8_t format; /* SR_PARCEL_FORMAT; set by sr_exchange_give */
    uint8_t state;  /* sr_conn_state: IDLE, HEAD or READY */
    uint8_t listener;
    uint8_t body;    /* sr_parcel_body: RAW, the bytes are as they came; DECODED, behind `head` bytes come
                     body_length bytes of body; FILE, the body is in a second descriptor */
    uint8_t preface; /* sr_conn */
    uint8_t unused[3];
    uint32_t requests;    /* taken on this connection so far */
    uint32_t head;        /* bytes of the head, for DECODED and FILE */
    uint32_t bytes;       /* that follow the parcel */
    uint64_t body_length; /* for DECODED and FILE */
    int64_t deadline;     /* monotonic ns: the clock is the machine's */
    int64_t ready_at;
    sr_peer peer;
} sr_parcel;

typedef enum sr_exchange_result {
    SR_EXCHANGE_OK,
    SR_EXCHANGE_FULL,   /* give: no room now. take: nothing there now */
    SR_EXCHANGE_FAILED, /* errno; give: the message can't be sent at all; take: it is gone (EBADMSG: it was
                           broken) or stays */
} sr_exchange_result;

int sr_exchange_open(sr_exchange *x); /* 0 or errno */
void sr_exchange_close(sr_exchange *x);

/*
 * Give n connections away; their format is filled in here. fds: one each, and for a FILE a second one behind it;
 * n_fds in all. The descriptors stay open in this process: the caller closes them when the answer is OK. `parts` are
 * the bytes of a single parcel.
 */
sr_exchange_result sr_exchange_give(sr_exchange *x, sr_parcel *parcels, int n, const int *fds, int n_fds,
                                    const sr_bytes *parts, int n_parts);

/*
 * Take one message. *n parcels, descriptors as above (close-on-exec, the caller's from now on), and the bytes
 * in `bytes`, which has room for SR_PARCEL_BYTES_MAX.
 */
sr_exchange_result sr_exchange_take(sr_exchange *x, sr_parcel *parcels, int *n, int *fds, int *n_fds,
                                    char *bytes, size_t *n_bytes);

/* The first parcel of the message that would be taken next, left where it is. False: there is none. */
bool sr_exchange_peek(const sr_exchange *x, sr_parcel *parcel);

#endif
