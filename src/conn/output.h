#ifndef SR_OUTPUT_H
#define SR_OUTPUT_H
/*
 * output: bytes of a response that the socket has not accepted yet: first memory, then one file. A file of
 * the application comes behind a spool, as soon as that is sent.
 *
 * Memory is bounded. What is larger than SR_OUTPUT_MEMORY, and everything while the engine holds
 * SR_OUTPUT_TOTAL already, is copied to an unlinked temporary file and sent from there, so that 1,000 slow
 * readers of a megabyte cost disk cache, not memory of the process. If the disk is full or no descriptor is
 * left, up to SR_OUTPUT_TOTAL of a response stay in memory after all, behind what is on the disk, since the
 * client was promised the response.
 *
 * Owner: the connection, while something is pending.
 */
#include "../base/buffer.h"
#include "../base/list.h"
#include "../transport/transport.h"
#include "pace.h"

#include <sys/types.h>
#include <sys/uio.h>

enum { SR_OUTPUT_MEMORY = 256 * 1024, SR_OUTPUT_TOTAL = 64 * 1024 * 1024 };

/* More of the file, each part behind a text. */
typedef struct sr_parts {
    sr_buffer text; /* of all parts */
    unsigned n, next;
    struct {
        size_t text; /* bytes of it */
        off_t offset;
        uint64_t length;
    } at[];
} sr_parts;

/*
 * A temporary file that outputs share, each with a descriptor of its own. Who is the last to release it gives
 * its bytes back (spools.h).
 */
typedef struct sr_copy {
    unsigned users;
    uint64_t bytes;
} sr_copy;

typedef struct sr_output {
    sr_transport *transport; /* of the connection, which owns it; NULL: plain */
    sr_pace pace;            /* of what the socket has taken since; the caller's */
    sr_buffer mem;           /* sent first */
    int fd;                  /* then this file; -1: none; owned */
    bool spool;              /* fd is a temporary file of ours, and may grow */
    bool copies;   /* no sendfile: somebody else has the socket and may make it blocking at any moment, or the
                           file, and may change it while its pages lie in the socket */
    uint64_t owed; /* bytes that were pending when the response was held; the caller's */
    uint64_t written;   /* bytes of the spool, those that were sent included: what it takes on the disk */
    sr_buffer tail;     /* what comes behind the spool, as long as that can't grow */
    off_t offset;       /* next byte of the file to send */
    uint64_t file_left; /* bytes of the file to send */
    int next;           /* while there is a spool: the file that comes after it; -1: none; owned */
    off_t next_offset;
    uint64_t next_left;
    sr_copy *copy;   /* the file is one in place of that of the application; NULL: it is not */
    sr_parts *parts; /* of the file, after that; NULL: none; owned */
    sr_link
        leased; /* in sr_engine.leased: others wait until they may write to the file (leased.h); or alone */
    int64_t broken_at; /* monotonic ns: since then somebody is known to wait. 0: nobody is */
    bool stalled; /* the file can't be read meanwhile, so that no byte of others is sent: its copy will be */
} sr_output;

typedef enum sr_keep {
    SR_KEEP_BY_SIZE,
    SR_KEEP_ON_DISK,
    SR_KEEP_IN_MEMORY, /* unless there is a spool */
    SR_KEEP_OFF_DISK,  /* there is no room on the disk */
} sr_keep;

typedef enum sr_flush {
    SR_FLUSH_DONE,  /* nothing is pending any more */
    SR_FLUSH_AGAIN, /* the socket is full */
    SR_FLUSH_SHORT, /* the file ended before file_left bytes: the response can only be cut */
    SR_FLUSH_GONE,  /* the client is gone: errno */
} sr_flush;

sr_output *sr_output_new(void);
void sr_output_free(sr_output *o); /* closes the file; NULL is fine */

/*
 * Keeps the bytes of iov that follow its first `skip`, where `where` says. Returns false with errno on
 * failure: the response can only be cut.
 */
bool sr_output_keep(sr_output *o, const struct iovec *iov, int n, size_t skip, sr_keep where,
                    const char *tmpdir);

/*
 * Sends a file after what is kept. Takes over fd in every case. Only once, and nothing can be kept after it.
 */
void sr_output_file(sr_output *o, int fd, off_t offset, uint64_t length);

/*
 * The file that was given to sr_output_file goes on in `fd`, which is taken over: its first byte is that at
 * `from` of the file so far. -1: the rest is lost, and the response can only be cut. Becomes a user of
 * `copy`, which may be NULL.
 */
void sr_output_replace(sr_output *o, int fd, off_t from, sr_copy *copy);

void sr_copy_release(sr_copy *copy); /* NULL is fine */

/* Has room for that many parts; the caller fills them. NULL: no memory. */
sr_parts *sr_parts_new(unsigned n);
void sr_parts_free(sr_parts *p); /* NULL is fine */

/* Sends what the socket accepts, and adds the number of bytes to *sent. */
sr_flush sr_output_flush(sr_output *o, int socket, uint64_t *sent);

/*
 * Takes up to `len` of the bytes that are to be sent next, for a caller that frames them. 0: none, or it is
 * stalled; -1: what sr_flush calls SHORT.
 */
ssize_t sr_output_take(sr_output *o, char *to, size_t len);

/* Bytes that are still to be sent, without parts. */
static inline uint64_t sr_output_pending(const sr_output *o)
{
    return sr_buffer_len(&o->mem) + o->file_left + sr_buffer_len(&o->tail) + o->next_left;
}

static inline bool sr_output_done(const sr_output *o)
{
    return !sr_output_pending(o) && (!o->parts || o->parts->next == o->parts->n);
}

static inline size_t sr_output_memory(const sr_output *o)
{
    return o->mem.cap + o->tail.cap;
}

#endif
