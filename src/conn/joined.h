#ifndef SR_JOINED_H
#define SR_JOINED_H
/*
 * joined: bytes of one connection that will be sent together. An application that writes ten bytes at a time
 * must not cost a system call for each write: what its worker has written by now is sent at once, and so is a
 * head with what follows it.
 *
 * Owner: the engine; one connection at a time. Bytes do not stay beyond the step of the loop that has added
 * them: who adds some sends them, or calls sr_joined_flush at the end.
 */
#include "../base/buffer.h"

struct sr_conn;
struct sr_engine;

enum {
    SR_JOIN_MAX = 2048,        /* pieces up to this size are copied: one write is cheaper than two */
    SR_JOINED_MAX = 16 * 1024, /* in all */
};

typedef struct sr_joined {
    sr_buffer bytes;
    struct sr_conn *of; /* NULL: there are none */
} sr_joined;

/* Sends them. Closes nothing (send.h). */
void sr_joined_flush(struct sr_engine *e);

/* The caller has sent them, or nobody will. */
static inline void sr_joined_forget(sr_joined *j)
{
    j->of = NULL;
    sr_buffer_reset(&j->bytes);
}

#endif
