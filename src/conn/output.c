#include "output.h"

#include "../net/nosignal.h"
#include "../net/tempfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    TURN = 1024 * 1024,          /* bytes of a file in one turn */
    TURN_ENCRYPTED = 256 * 1024, /* where each of them costs half a nanosecond, and is copied */
    PIECE = 64 * 1024,
};

sr_output *sr_output_new(void)
{
    sr_output *o = calloc(1, sizeof *o);
    if (o) {
        o->fd = o->next = -1;
        sr_link_init(&o->leased);
    }
    return o;
}

void sr_output_free(sr_output *o)
{
    if (!o)
        return;
    sr_link_remove(&o->leased);
    if (o->fd >= 0)
        close(o->fd);
    if (o->next >= 0)
        close(o->next);
    sr_buffer_free(&o->mem);
    sr_parts_free(o->parts);
    free(o);
}

sr_parts *sr_parts_new(unsigned n)
{
    sr_parts *p = calloc(1, sizeof *p + n * sizeof p->at[0]);
    if (p)
        p->n = n;
    return p;
}

void sr_parts_free(sr_parts *p)
{
    if (!p)
        return;
    sr_buffer_free(&p->text);
    free(p);
}

static bool spool_open(sr_output *o, const char *tmpdir)
{
    if (o->fd >= 0)
        return o->spool; /* otherwise the file is the application's */
    o->fd = sr_tempfile_open(tmpdir);
    o->spool = o->fd >= 0;
    o->offset = 0;
    return o->spool;
}

/* Appends bytes of a response to those in memory, or to those in the file. */
typedef bool put_bytes(sr_output *o, const char *data, size_t len);

static bool to_spool(sr_output *o, const char *data, size_t len)
{
    if (sr_tempfile_write(o->fd, data, len) < 0)
        return false;
    o->file_left += len;
    return true;
}

static bool to_memory(sr_output *o, const char *data, size_t len)
{
    return sr_buffer_add(&o->mem, data, len);
}

static bool put_all(sr_output *o, const struct iovec *iov, int n, size_t skip, put_bytes *put)
{
    for (int i = 0; i < n; i++) {
        size_t past = skip < iov[i].iov_len ? skip : iov[i].iov_len;
        size_t len = iov[i].iov_len - past;
        skip -= past;
        if (len && !put(o, (const char *)iov[i].iov_base + past, len))
            return false;
    }
    return true;
}

/* The disk is full: moves the bytes of the file to memory, after those already there, and closes the file. */
static bool unspool(sr_output *o)
{
    size_t left = (size_t)o->file_left, got = 0;
    if (o->fd < 0)
        return true;
    if (!o->spool || left > SR_OUTPUT_TOTAL || !sr_buffer_reserve(&o->mem, left))
        return false;
    while (got < left) {
        ssize_t r = pread(o->fd, o->mem.data + o->mem.end + got, left - got, o->offset + (off_t)got);
        if (r < 0 && errno == EINTR)
            continue;
        if (r <= 0)
            return false;
        got += (size_t)r;
    }
    o->mem.end += left;
    o->file_left = 0;
    o->spool = false;
    close(o->fd);
    o->fd = -1;
    return true;
}

bool sr_output_keep(sr_output *o, const struct iovec *iov, int n, size_t skip, sr_keep where,
                    const char *tmpdir)
{
    size_t rest = 0;
    for (int i = 0; i < n; i++)
        rest += iov[i].iov_len;
    rest -= skip;
    bool large = sr_buffer_len(&o->mem) + rest > SR_OUTPUT_MEMORY;
    if (!o->spool && where != SR_KEEP_ON_DISK && !(where == SR_KEEP_BY_SIZE && large))
        return put_all(o, iov, n, skip, to_memory);
    uint64_t before = o->file_left;
    if (spool_open(o, tmpdir) && put_all(o, iov, n, skip, to_spool))
        return true;
    int why = errno;
    o->file_left = before;
    /* the client was promised this response: it is kept in memory if that is possible */
    if (where == SR_KEEP_BY_SIZE && rest <= SR_OUTPUT_TOTAL && unspool(o) &&
        put_all(o, iov, n, skip, to_memory))
        return true;
    errno = why;
    return false;
}

void sr_output_file(sr_output *o, int fd, off_t offset, uint64_t length)
{
    if (o->fd >= 0) {
        o->next = fd;
        o->next_offset = offset;
        o->next_left = length;
        return;
    }
    o->fd = fd;
    o->offset = offset;
    o->file_left = length;
}

void sr_output_replace(sr_output *o, int fd, off_t from)
{
    int *place = o->next >= 0 ? &o->next : &o->fd;
    sr_link_remove(&o->leased);
    if (*place >= 0)
        close(*place);
    if (place == &o->next)
        o->next_offset -= from;
    else
        o->offset -= from;
    *place = fd;
}

static sr_flush failed(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK ? SR_FLUSH_AGAIN : SR_FLUSH_GONE;
}

static sr_flush flush_memory(sr_output *o, int socket, uint64_t *sent)
{
    int flags = o->file_left || o->next_left ? MSG_MORE : 0; /* head and file in one packet */
    while (sr_buffer_len(&o->mem)) {
        ssize_t n =
            sr_transport_send(o->transport, socket, sr_buffer_at(&o->mem), sr_buffer_len(&o->mem), flags);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed();
        sr_buffer_take(&o->mem, (size_t)n);
        *sent += (uint64_t)n;
    }
    return SR_FLUSH_DONE;
}

/* sendfile has no MSG_NOSIGNAL. sirius-edge ignores SIGPIPE, but callers need not. */
static ssize_t sendfile_nosignal(int socket, int fd, off_t *offset, size_t want)
{
    struct sigaction action;
    sr_nosignal mask;
    if (sigaction(SIGPIPE, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
        return sendfile(socket, fd, offset, want);
    sr_nosignal_begin(&mask);
    ssize_t n = sendfile(socket, fd, offset, want);
    sr_nosignal_end(&mask, n < 0 ? errno : 0);
    return n;
}

/*
 * Nor has it MSG_DONTWAIT, and an application that has used psgix.io may have made the socket blocking, for
 * all its descriptors. Then the bytes are copied, and so they are where a transport encrypts them.
 */
static ssize_t send_file(const sr_output *o, int socket, off_t *offset, size_t want)
{
    char piece[PIECE];
    if (!o->transport && !o->copies && fcntl(socket, F_GETFL) & O_NONBLOCK)
        return sendfile_nosignal(socket, o->fd, offset, want);
    ssize_t n = pread(o->fd, piece, want < sizeof piece ? want : sizeof piece, *offset);
    if (n > 0)
        n = sr_transport_send(o->transport, socket, piece, (size_t)n, 0);
    if (n > 0)
        *offset += n;
    return n;
}

static sr_flush flush_file(sr_output *o, int socket, uint64_t *sent, size_t *budget)
{
    if (o->file_left && o->fd < 0)
        return SR_FLUSH_SHORT;
    while (o->file_left) {
        size_t want = o->file_left < *budget ? (size_t)o->file_left : *budget;
        if (!want)
            return SR_FLUSH_AGAIN;
        ssize_t n = send_file(o, socket, &o->offset, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EIO || errno == EINVAL || errno == EOVERFLOW))
            return SR_FLUSH_SHORT;
        if (n < 0)
            return failed();
        if (n == 0)
            return SR_FLUSH_SHORT;
        o->file_left -= (uint64_t)n;
        *budget -= (size_t)n;
        *sent += (uint64_t)n;
    }
    return SR_FLUSH_DONE;
}

/* The spool is sent, and the file behind it takes its place. */
static void next_file(sr_output *o)
{
    close(o->fd);
    o->fd = o->next;
    o->offset = o->next_offset;
    o->file_left = o->next_left;
    o->spool = false;
    o->next = -1;
    o->next_left = 0;
}

/* False: there is no memory for its text, and the response can only be cut. */
static bool part_begin(sr_output *o)
{
    sr_parts *p = o->parts;
    size_t text = p->at[p->next].text;
    if (!sr_buffer_add(&o->mem, sr_buffer_at(&p->text), text))
        return false;
    sr_buffer_take(&p->text, text);
    o->offset = p->at[p->next].offset;
    o->file_left = p->at[p->next++].length;
    return true;
}

sr_flush sr_output_flush(sr_output *o, int socket, uint64_t *sent)
{
    /* one fast reader of a large file must not keep the loop from the others */
    size_t budget = o->transport ? TURN_ENCRYPTED : TURN;
    for (;;) {
        sr_flush r = flush_memory(o, socket, sent);
        if (r == SR_FLUSH_DONE)
            r = flush_file(o, socket, sent, &budget);
        if (r == SR_FLUSH_DONE && o->next >= 0) {
            next_file(o);
            continue;
        }
        if (r == SR_FLUSH_DONE && o->next_left)
            return SR_FLUSH_SHORT;
        if (r != SR_FLUSH_DONE || !o->parts || o->parts->next == o->parts->n)
            return r;
        if (!part_begin(o))
            return SR_FLUSH_SHORT;
    }
}
