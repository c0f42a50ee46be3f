#ifndef SR_SEND_H
#define SR_SEND_H
/*
 * send: bytes of a response to the socket. What it takes goes out in one system call, the rest is kept (output.h) and flushed
 * by the loop. Nothing here waits for a client. After a failed write everything is accepted and thrown away, and
 * conn->gone is set.
 */
#include "engine.h"

void sr_send(sr_engine *e, sr_conn *c, struct iovec *iov, int n);

/*
 * The same for the last bytes of a response, which ends at once: when the connection closes behind it, the kernel holds them
 * for the FIN and both go out as one segment.
 */
void sr_send_last(sr_engine *e, sr_conn *c, struct iovec *iov, int n);

/* A file behind what is kept: sendfile from the loop. fd is taken over. Only once, and behind no other file. */
void sr_send_file(sr_engine *e, sr_conn *c, int fd, off_t offset, uint64_t length);

/* Flushes what is kept. Unless it is SR_FLUSH_AGAIN, nothing is pending any more. */
sr_flush sr_send_flush(sr_engine *e, sr_conn *c);

/* The time limit of a response that the client does not read begins anew. */
void sr_send_stall_watch(sr_engine *e, sr_conn *c);

/*
 * Bytes in the send buffer that the peer has not acknowledged. A socket is writable again only when a third of its buffer is
 * free, which takes a slow reader longer than write_ns: fewer bytes in the buffer are progress as well.
 */
int sr_send_unacknowledged(const sr_conn *c);

#endif
