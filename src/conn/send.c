#include "send.h"

#include "../net/unsent.h"
#include "deadline.h"
#include "spools.h"
#include "trouble.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IOV_BATCH = 1024 };

int sr_send_unacknowledged(const sr_conn *c)
{
    return sr_unsent_bytes(c->source.fd);
}

void sr_send_stall_watch(sr_engine *e, sr_conn *c)
{
    c->unacknowledged = sr_send_unacknowledged(c);
    sr_deadline_set(e, c, SR_DEADLINE_WRITE);
}

uint64_t sr_send_total(const sr_conn *c)
{
    return sr_unsent_total(c->source.fd);
}

static void lost(sr_conn *c, sr_closed why)
{
    c->gone = true;
    c->why = why;
}

sr_flush sr_send_flush(sr_engine *e, sr_conn *c)
{
    if (!c->out)
        return SR_FLUSH_DONE;
    e->pending -= sr_output_memory(c->out);
    uint64_t before = c->sent;
    sr_flush r = sr_output_flush(c->out, c->source.fd, &c->sent);
    e->pending += sr_output_memory(c->out);
    if (r == SR_FLUSH_AGAIN && c->out->stalled && !c->out->broken_at)
        e->leased.asked = true;
    if (r == SR_FLUSH_AGAIN)
        sr_pace_moved(&c->out->pace, SR_PACE_OUTPUT, e->now, c->sent - before);
    if (r != SR_FLUSH_AGAIN) {
        e->pending -= sr_output_memory(c->out);
        sr_output_free(c->out);
        c->out = NULL;
    }
    return r;
}

/* Returns how many bytes the socket has accepted. Fewer than all: it is full. -1: the client is gone. */
static ssize_t send_some(sr_conn *c, struct iovec *iov, int n, int more)
{
    size_t total = 0;
    while (n > 0) {
        int batch = n < IOV_BATCH ? n : IOV_BATCH, flags = n > IOV_BATCH ? MSG_MORE : more;
        size_t want = 0;
        for (int i = 0; i < batch; i++)
            want += iov[i].iov_len;
        ssize_t sent = n == 1
                           ? sr_transport_send(c->transport, c->source.fd, iov->iov_base, iov->iov_len, flags)
                           : sr_transport_write(c->transport, c->source.fd, iov, batch, flags);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            return -1;
        if (sent < 0)
            break;
        total += (size_t)sent;
        if ((size_t)sent < want)
            break;
        iov += batch;
        n -= batch;
    }
    c->sent += total;
    return (ssize_t)total;
}

static size_t iov_bytes(const struct iovec *iov, int n)
{
    size_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += iov[i].iov_len;
    return sum;
}

/*
 * Without room on the disk, memory takes more than it should: until the worker waits that makes the response,
 * or the slowest client has paid (slowest.h).
 */
static bool kept(sr_engine *e, sr_output *out, const struct iovec *iov, int n, size_t skip, sr_keep where)
{
    if (where != SR_KEEP_OFF_DISK) {
        if (sr_output_keep(out, iov, n, skip, where, e->config.tmpdir))
            return true;
        sr_spools_failed(e, errno);
        if (where != SR_KEEP_ON_DISK) /* then memory was tried as well */
            return false;
    } else {
        errno = ENOSPC;
    }
    int why = errno;
    if (e->pending <= 2 * (size_t)SR_OUTPUT_TOTAL &&
        sr_output_keep(out, iov, n, skip, SR_KEEP_OFF_DISK, e->config.tmpdir))
        return true;
    errno = why;
    return false;
}

bool sr_send_holds(const sr_engine *e, const sr_output *out)
{
    return out && e->pending > SR_OUTPUT_TOTAL && !sr_spools_room(e, SR_OUTPUT_MEMORY);
}

bool sr_send_keep(sr_engine *e, sr_output **out, const struct iovec *iov, int n, size_t skip, sr_keep where)
{
    if (!*out) {
        if (!(*out = sr_output_new())) {
            sr_trouble_lost(e, ENOMEM);
            return false;
        }
        (*out)->pace = sr_pace_begin(e->now);
    }
    e->pending -= sr_output_memory(*out);
    if (where == SR_KEEP_BY_SIZE && e->pending > SR_OUTPUT_TOTAL)
        where = SR_KEEP_ON_DISK;
    /* what has had no room so far goes to the file before it */
    if (where != SR_KEEP_IN_MEMORY && !sr_spools_room(e, sr_buffer_len(&(*out)->tail) + iov_bytes(iov, n)))
        where = SR_KEEP_OFF_DISK;
    bool ok = kept(e, *out, iov, n, skip, where);
    if (!ok)
        sr_trouble_count(e, SR_TROUBLE_SPOOL, 1, errno);
    e->pending += sr_output_memory(*out);
    return ok;
}

static void keep(sr_engine *e, sr_conn *c, const struct iovec *iov, int n, size_t skip, sr_keep where)
{
    if (!sr_send_keep(e, &c->out, iov, n, skip, where))
        lost(c, SR_CLOSED_ERROR); /* the response can only be cut off */
    if (c->out)
        c->out->transport = c->transport;
}

static void send_or_keep(sr_engine *e, sr_conn *c, struct iovec *iov, int n, int more)
{
    if (c->gone)
        return;
    ssize_t sent = c->out ? 0 : send_some(c, iov, n, more);
    if (sent < 0) {
        sr_trouble_lost(e, errno);
        lost(c, SR_CLOSED_CLIENT);
    } else if ((size_t)sent < iov_bytes(iov, n))
        keep(e, c, iov, n, (size_t)sent, SR_KEEP_BY_SIZE);
}

void sr_send(sr_engine *e, sr_conn *c, struct iovec *iov, int n)
{
    send_or_keep(e, c, iov, n, 0);
}

void sr_send_last(sr_engine *e, sr_conn *c, struct iovec *iov, int n, bool kept)
{
    send_or_keep(e, c, iov, n, kept ? 0 : MSG_MORE);
}

void sr_send_file(sr_engine *e, sr_conn *c, int fd, off_t offset, uint64_t length)
{
    if (!c->gone)
        keep(e, c, NULL, 0, 0, SR_KEEP_IN_MEMORY); /* the file comes after what is kept */
    if (c->gone)
        close(fd);
    else
        sr_output_file(c->out, fd, offset, length);
}

void sr_send_head_and_file(sr_engine *e, sr_conn *c, sr_bytes head, int fd, off_t offset, uint64_t length,
                           sr_parts *parts)
{
    struct iovec iov = {(char *)(uintptr_t)head.at, head.len};
    if (!c->gone) /* behind 100 (Continue), which may be in a spool */
        keep(e, c, &iov, 1, 0, SR_KEEP_IN_MEMORY);
    if (c->gone) {
        close(fd);
        sr_parts_free(parts);
        return;
    }
    sr_output_file(c->out, fd, offset, length);
    c->out->parts = parts;
}
