#ifndef SR_OUTPUT_H
#define SR_OUTPUT_H
/*
 * output: response bytes that the socket has not taken yet: memory first, then one file.
 *
 * Memory is bounded: a rest larger than SR_OUTPUT_MEMORY, or any rest while the engine holds SR_OUTPUT_TOTAL
 * already, is copied to an unlinked temporary file and sent from there, so that 1,000 slow readers of a
 * megabyte cost disk cache. When there is no room on the disk, or no descriptor, up to SR_OUTPUT_TOTAL of a
 * response stay in memory after all: it was promised to a client. Owner: the connection; exists only while something
 * is pending. Lock: the helm.
 */
#include "../base/buffer.h"

#include <sys/types.h>
#include <sys/uio.h>

enum { SR_OUTPUT_MEMORY = 256 * 1024, SR_OUTPUT_TOTAL = 64 * 1024 * 1024 };

typedef struct sr_output {
    sr_buffer mem;      /* sent first */
    int fd;             /* then this file, -1: none; owned */
    bool spool;         /* fd is our own temporary file and may grow */
    bool copies;        /* somebody else holds the socket and may make it block at any moment: no sendfile */
    off_t offset;       /* next byte of the file to send */
    uint64_t file_left; /* bytes of the file to send */
} sr_output;

typedef enum sr_keep { SR_KEEP_BY_SIZE, SR_KEEP_ON_DISK, SR_KEEP_IN_MEMORY } sr_keep;

typedef enum sr_flush {
    SR_FLUSH_DONE,  /* nothing is pending any more */
    SR_FLUSH_AGAIN, /* the socket is full */
    SR_FLUSH_SHORT, /* the file ended before file_left bytes: the response can only be cut */
    SR_FLUSH_GONE,  /* the peer is gone: errno */
} sr_flush;

sr_output *sr_output_new(void);
void sr_output_free(sr_output *o); /* NULL is fine; closes the file */

/* Keep the bytes of iov behind its first `skip`: where it is said, or by size. False: errno, and the response can
 * only be cut. */
bool sr_output_keep(sr_output *o, const struct iovec *iov, int n, size_t skip, sr_keep where,
                    const char *tmpdir);

/* Send a file behind what is kept. Takes the ownership of fd in every case. Only once, and never behind a
 * spool. */
void sr_output_file(sr_output *o, int fd, off_t offset, uint64_t length);

/* Send what the socket takes. *sent counts the bytes, added to. `more`: a last small packet may wait for
 * others. */
sr_flush sr_output_flush(sr_output *o, int socket, uint64_t *sent);

static inline size_t sr_output_memory(const sr_output *o)
{
    return o->mem.cap;
}

#endif
