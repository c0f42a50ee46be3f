#include "output.h"

#include "../base/cursor.h"
#include "../net/lease.h"
#include "../net/sendfile.h"
#include "../net/tempfile.h"
#include "spools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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

static void spool_close(sr_output *o)
{
    if (o->spool)
        sr_spools_gave(o->written);
    if (o->fd >= 0)
        close(o->fd);
    o->fd = -1;
    o->spool = false;
    o->written = o->file_left = 0;
}

void sr_copy_release(sr_copy *copy)
{
    if (!copy || --copy->users)
        return;
    sr_spools_gave(copy->bytes);
    free(copy);
}

void sr_output_free(sr_output *o)
{
    if (!o)
        return;
    sr_link_remove(&o->leased);
    spool_close(o);
    if (o->next >= 0)
        close(o->next);
    sr_buffer_free(&o->mem);
    sr_buffer_free(&o->tail);
    sr_copy_release(o->copy);
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
    o->written = 0;
    return o->spool;
}

/* By one system call, and at its place: a part of it that was written without the rest does not count. */
static bool to_spool(sr_output *o, const struct iovec *iov, int n, size_t skip, size_t len)
{
    if (sr_tempfile_put(o->fd, iov, n, skip, (off_t)o->written) < 0)
        return false;
    sr_spools_took(len);
    o->written += len;
    o->file_left += len;
    return true;
}

/* Behind the spool, if there is one. */
static bool to_memory(sr_output *o, const struct iovec *iov, int n, size_t skip, size_t rest)
{
    sr_buffer *to = o->spool ? &o->tail : &o->mem;
    if (!rest) /* a file follows: `to` may have no memory, to which even 0 bytes must not be added */
        return true;
    if (!sr_buffer_reserve(to, rest))
        return false;
    sr_cursor c = {iov, n, 0};
    sr_cursor_skip(&c, skip);
    to->end += sr_cursor_copy(&c, to->data + to->end, rest);
    return true;
}

/* There may be room again: what is behind the spool goes into it. */
static bool tail_to_spool(sr_output *o)
{
    struct iovec iov = {sr_buffer_at(&o->tail), sr_buffer_len(&o->tail)};
    if (iov.iov_len && !to_spool(o, &iov, 1, 0, iov.iov_len))
        return false;
    sr_buffer_free(&o->tail);
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
    if (where == SR_KEEP_OFF_DISK)
        return (o->fd < 0 || o->spool) && to_memory(o, iov, n, skip, rest);
    if (!o->spool && where != SR_KEEP_ON_DISK && !(where == SR_KEEP_BY_SIZE && large))
        return to_memory(o, iov, n, skip, rest);
    if (spool_open(o, tmpdir) && tail_to_spool(o) && to_spool(o, iov, n, skip, rest))
        return true;
    int why = errno;
    /* the client was promised this response: it is kept in memory if that is possible */
    if (where == SR_KEEP_BY_SIZE && (o->fd < 0 || o->spool) &&
        sr_buffer_len(&o->mem) + sr_buffer_len(&o->tail) + rest <= SR_OUTPUT_TOTAL &&
        to_memory(o, iov, n, skip, rest))
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

void sr_output_replace(sr_output *o, int fd, off_t from, sr_copy *copy)
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
    o->broken_at = 0;
    o->stalled = false;
    if ((o->copy = copy))
        copy->users++;
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

static ssize_t stall(sr_output *o)
{
    o->stalled = true;
    errno = EAGAIN;
    return -1;
}

/*
 * sendfile has no MSG_DONTWAIT, and an application that has used psgix.io may have made the socket blocking,
 * for all its descriptors. Then the bytes are copied, and so they are where a transport encrypts them.
 */
static ssize_t send_file(sr_output *o, int socket, off_t *offset, size_t want)
{
    char piece[PIECE];
    if (!o->transport && !o->copies && fcntl(socket, F_GETFL) & O_NONBLOCK)
        return sr_sendfile(socket, o->fd, offset, want);
    if (o->stalled)
        return stall(o);
    ssize_t n = pread(o->fd, piece, want < sizeof piece ? want : sizeof piece, *offset);
    /*
     * behind the read: what was read before the lease is broken has not changed. When the kernel takes it
     * away, it tells nobody
     */
    if (!o->spool && !sr_link_alone(&o->leased) && !sr_lease_holds(o->fd))
        return stall(o);
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
        if (n < 0 && (errno == EIO || errno == EINVAL || errno == EISDIR || errno == EOVERFLOW))
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

/* The spool is sent: what is behind it takes its place. */
static void spool_over(sr_output *o)
{
    spool_close(o);
    sr_buffer_free(&o->mem);
    o->mem = o->tail;
    o->tail = (sr_buffer){0};
    if (o->next < 0)
        return;
    o->fd = o->next;
    o->offset = o->next_offset;
    o->file_left = o->next_left;
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
        if (r == SR_FLUSH_DONE && o->spool && (sr_buffer_len(&o->tail) || o->next >= 0)) {
            spool_over(o);
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

/* From the file. 0: it is stalled; -1: it is too short. */
static ssize_t take_file(sr_output *o, char *to, size_t len)
{
    ssize_t n;
    if (o->fd < 0)
        return -1;
    if (o->stalled)
        return 0;
    do
        n = pread(o->fd, to, o->file_left < len ? (size_t)o->file_left : len, o->offset);
    while (n < 0 && errno == EINTR);
    if (!o->spool && !sr_link_alone(&o->leased) && !sr_lease_holds(o->fd)) {
        stall(o);
        return 0;
    }
    if (n <= 0)
        return -1;
    o->offset += n;
    o->file_left -= (uint64_t)n;
    return n;
}

ssize_t sr_output_take(sr_output *o, char *to, size_t len)
{
    size_t got = 0;
    while (got < len) {
        size_t mem = sr_buffer_len(&o->mem);
        if (mem) {
            size_t n = mem < len - got ? mem : len - got;
            memcpy(to + got, sr_buffer_at(&o->mem), n);
            sr_buffer_take(&o->mem, n);
            got += n;
        } else if (o->file_left) {
            ssize_t n = take_file(o, to + got, len - got);
            if (n <= 0)
                return got ? (ssize_t)got : n;
            got += (size_t)n;
        } else if (o->spool && (sr_buffer_len(&o->tail) || o->next >= 0)) {
            spool_over(o);
        } else if (o->next_left || (o->parts && o->parts->next < o->parts->n && !part_begin(o))) {
            return -1;
        } else if (sr_output_done(o)) {
            break;
        }
    }
    return (ssize_t)got;
}
