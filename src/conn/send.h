#ifndef SR_SEND_H
#define SR_SEND_H
/*
 * send: writes the bytes of a response to the socket. What the socket accepts is sent in one system call; the
 * rest is kept (output.h) and sent later by the loop. Nothing here waits for a client.
 *
 * Failure: after a write that failed, conn->gone is set and further bytes are dropped. No function here
 * closes the connection.
 */
#include "engine.h"

void sr_send(sr_engine *e, sr_conn *c, struct iovec *iov, int n);

/*
 * The same for the last bytes of a response. If the connection is closed after them, the kernel holds them
 * back for the FIN, and both travel in one segment. `kept`: it is not.
 */
void sr_send_last(sr_engine *e, sr_conn *c, struct iovec *iov, int n, bool kept);

/* Sends a file after what is kept. Takes over fd. Only once for a response. */
void sr_send_file(sr_engine *e, sr_conn *c, int fd, off_t offset, uint64_t length);

/*
 * The same for a response whose head was not sent yet: both leave together, when the response ends. `parts`,
 * which is taken over as well, is more of the file; NULL: there is none.
 */
void sr_send_head_and_file(sr_engine *e, sr_conn *c, sr_bytes head, int fd, off_t offset, uint64_t length,
                           sr_parts *parts);

/*
 * Keeps the bytes of iov that follow its first `skip` in *out, which is made if it is NULL. False: there is
 * no room for them, neither in memory nor on the disk, which was counted: the response can only be cut.
 */
bool sr_send_keep(sr_engine *e, sr_output **out, const struct iovec *iov, int n, size_t skip, sr_keep where);

/* Sends what is kept. Unless it returns SR_FLUSH_AGAIN, nothing is pending any more. */
sr_flush sr_send_flush(sr_engine *e, sr_conn *c);

/*
 * How many bytes were ever written to the socket, by whatever process, and one. 0: it is no TCP socket, or
 * the kernel does not tell (before Linux 4.19).
 */
uint64_t sr_send_total(const sr_conn *c);

/*
 * Whether the worker that makes the response should wait: there is no room for what the client has not read,
 * which is kept in `out` (or NULL), neither on the disk nor in memory.
 */
bool sr_send_holds(const sr_engine *e, const sr_output *out);

/* Restarts --write-timeout, as the client has read something. */
void sr_send_stall_watch(sr_engine *e, sr_conn *c);

/*
 * Bytes in the send buffer that the client has not acknowledged. A socket becomes writable only when a third
 * of its buffer is free, which takes a slow reader longer than --write-timeout: fewer bytes in the buffer
 * count as progress as well.
 */
int sr_send_unacknowledged(const sr_conn *c);

#endif
