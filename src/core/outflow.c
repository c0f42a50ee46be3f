#include "parts.h"

#include <errno.h>
#include <limits.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IOV_BATCH = 1024, LINGER_READS = 4 };
#define LATE_NS (100 * SR_MILLISECOND)
#define SPOOL_MAX ((uint64_t)1 << 30) /* of one response; past it the producer waits for the reader */

/* --- the end of a connection --- */

void sr_outflow_lingering(sr_engine *e, sr_conn *c)
{
    for (int i = 0; i < LINGER_READS; i++) {
        ssize_t n = recv(c->source.fd, e->scratch, SR_SCRATCH, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n <= 0) {
            sr_conn_close(e, c, c->why);
            return;
        }
    }
    sr_conn_watch(e, c, EPOLLIN);
}

/*
 * Bytes in the send buffer that the peer has not acknowledged. A socket is writable again only when a third
 * of its buffer is free, which takes a slow reader longer than write_ns: fewer bytes in the buffer are
 * progress as well.
 */
static int unacknowledged(const sr_conn *c)
{
    int n = 0;
    return ioctl(c->source.fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

void sr_outflow_close(sr_engine *e, sr_conn *c, sr_closed why)
{
    c->why = why;
    sr_link_remove(&c->turn);
    sr_conn_forget_request(c, sr_buffer_len(&c->in));
    if (shutdown(c->source.fd, SHUT_WR) < 0) {
        sr_conn_close(e, c, why);
        return;
    }
    c->state = SR_CONN_LINGER;
    c->unacknowledged = unacknowledged(c);
    sr_deadline_set(e, c, SR_DEADLINE_LINGER);
    sr_outflow_lingering(e, c);
}

/* The kernel may have megabytes for a slow reader: as long as it reads, they must not be lost. */
static void linger_over(sr_engine *e, sr_conn *c)
{
    int left = unacknowledged(c);
    if (!left || left >= c->unacknowledged) {
        sr_conn_close(e, c, c->why);
        return;
    }
    c->unacknowledged = left;
    sr_deadline_set(e, c, SR_DEADLINE_LINGER);
}

/* All of the response is out: what now? */
static void response_over(sr_engine *e, sr_conn *c)
{
    sr_account_over(e, c, c->broken ? SR_OVER_ABORTED : SR_OVER_WHOLE);
    if (c->close_after) {
        /* to a client that does not expect the close: its next request would make a reset of it (RFC 9112 9.6) */
        if (!c->wants_close || c->linger || sr_buffer_len(&c->in) || c->body)
            sr_outflow_close(e, c, c->why);
        else
            sr_conn_close(e, c, c->why);
        return;
    }
    c->state = SR_CONN_IDLE;
    if (sr_buffer_len(&c->in)) { /* its next request may be whole: no time limit until somebody has looked */
        sr_deadline_clear(e, c);
        sr_link_append(&e->turns, &c->turn);
        return;
    }
    sr_deadline_set(e, c, SR_DEADLINE_IDLE);
    sr_conn_watch(e, c, EPOLLIN);
}

static void output_drop(sr_engine *e, sr_conn *c)
{
    if (!c->out)
        return;
    e->pending -= sr_output_memory(c->out);
    sr_output_free(c->out);
    c->out = NULL;
    if (c->state == SR_CONN_SERVING)
        sr_deadline_clear(e, c); /* of sr_outflow_behind */
}

/* Unless it is SR_FLUSH_AGAIN, nothing is pending any more. */
static sr_flush flush(sr_engine *e, sr_conn *c)
{
    if (!c->out)
        return SR_FLUSH_DONE;
    sr_flush r = sr_output_flush(c->out, c->source.fd, &c->sent);
    if (r != SR_FLUSH_AGAIN)
        output_drop(e, c);
    return r;
}

static void stall_watch(sr_engine *e, sr_conn *c)
{
    c->unacknowledged = unacknowledged(c);
    sr_deadline_set(e, c, SR_DEADLINE_WRITE);
}

static void lost(sr_conn *c, sr_closed why)
{
    c->gone = true;
    c->why = why;
}

/* While the application has it, the connection must stay. */
static void give_up(sr_engine *e, sr_conn *c, sr_closed why)
{
    if (c->state != SR_CONN_SERVING || c->slot) { /* in an edge nobody else has it */
        sr_conn_close(e, c, why);
        return;
    }
    lost(c, why);
    output_drop(e, c);
    sr_conn_unwatch(e, c);
}

static void stalled(sr_engine *e, sr_conn *c)
{
    bool late = e->now - c->deadline >
                LATE_NS; /* this process stood still itself (a suspended VM): not the peer's fault */
    if (late || unacknowledged(c) < c->unacknowledged)
        stall_watch(e, c);
    else
        give_up(e, c, SR_CLOSED_WRITE);
}

void sr_outflow_writable(sr_engine *e, sr_conn *c)
{
    uint64_t before = c->sent;
    switch (flush(e, c)) {
    case SR_FLUSH_DONE:
        sr_deadline_clear(e, c);
        response_over(e, c);
        return;
    case SR_FLUSH_AGAIN:
        if (c->sent != before || sr_link_alone(&c->timer))
            stall_watch(e, c);
        sr_conn_watch(e, c, EPOLLOUT);
        return;
    case SR_FLUSH_SHORT:
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return;
    case SR_FLUSH_GONE:
        sr_conn_close(e, c, SR_CLOSED_CLIENT);
        return;
    }
}

void sr_outflow_behind(sr_engine *e, sr_conn *c)
{
    bool told = c->registered && c->interest == EPOLLOUT;
    /* without a status it is a part of a 100, which is no part of the response */
    if (!c->status || c->gone || c->borrowed || c->blocked || told)
        return;
    sr_outflow_serving(e, c);
}

void sr_outflow_serving(sr_engine *e, sr_conn *c)
{
    uint64_t before = c->sent;
    sr_flush r = c->gone ? SR_FLUSH_GONE : flush(e, c);
    if (r == SR_FLUSH_AGAIN) {
        if (c->sent != before || sr_link_alone(&c->timer))
            stall_watch(e, c);
        sr_conn_watch(e, c, EPOLLOUT); /* if that fails, it waits for the end of the call */
        return;
    }
    if (r != SR_FLUSH_DONE && !c->gone)
        lost(c, r == SR_FLUSH_SHORT ? SR_CLOSED_ERROR : SR_CLOSED_CLIENT);
    sr_conn_unwatch(e, c);
}

bool sr_outflow_pending(sr_engine *e, sr_conn *c)
{
    uint64_t before = c->sent;
    sr_flush r = flush(e, c);
    switch (r) {
    case SR_FLUSH_DONE:
        sr_deadline_clear(e, c);
        sr_conn_unwatch(e, c);
        return true;
    case SR_FLUSH_AGAIN:
        if (c->sent != before || sr_link_alone(&c->timer))
            stall_watch(e, c);
        return sr_conn_watch(e, c, EPOLLOUT);
    case SR_FLUSH_SHORT:
    case SR_FLUSH_GONE:
        break;
    }
    sr_conn_close(e, c, r == SR_FLUSH_SHORT ? SR_CLOSED_ERROR : SR_CLOSED_CLIENT);
    return false;
}

void sr_outflow_end(sr_engine *e, sr_conn *c, bool close_after)
{
    sr_deadline_clear(e, c);
    c->state = SR_CONN_FLUSH;
    c->close_after = close_after;
    sr_outflow_writable(e, c);
}

void sr_outflow_refuse(sr_engine *e, sr_conn *c, int status, bool is_head)
{
    sr_buffer out;
    sr_buffer_init(&out);
    sr_conn_leave(e, c);
    c->linger = true;
    c->gone = false;
    sr_link_remove(&c->turn);
    sr_trouble_refused(e, c, status);
    if (!sr_response_refusal(&out, status, is_head, e->date, e->config.server)) {
        sr_buffer_free(&out);
        sr_conn_close(e, c, SR_CLOSED_ERROR);
        return;
    }
    struct iovec iov = {sr_buffer_at(&out), sr_buffer_len(&out)};
    sr_account_refuse(c, status, sr_bytes_of(iov.iov_base, iov.iov_len));
    if (e->log)
        sr_accesslog_refuse(e, c, sr_bytes_of(iov.iov_base, iov.iov_len));
    sr_conn_forget_request(c, sr_buffer_len(&c->in));
    sr_engine_send(e, c, &iov, 1);
    sr_buffer_free(&out);
    if (c->gone)
        sr_conn_close(e, c, c->why);
    else
        sr_outflow_end(e, c, true);
}

/* One that has had its time; while the server stops that is short */
static sr_closed idle_why(const sr_engine *e, sr_closed why)
{
    return sr_engine_draining(e) && !sr_engine_gives(e) ? SR_CLOSED_STOP : why;
}

/* A last look before an idle connection is closed: the request may have come this very moment. */
static void idle_over(sr_engine *e, sr_conn *c)
{
    char byte;
    ssize_t n = recv(c->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 1) {
        sr_deadline_set(e, c, SR_DEADLINE_HEAD);
        sr_conn_watch(e, c, EPOLLIN);
    } else {
        sr_outflow_close(e, c, idle_why(e, SR_CLOSED_IDLE));
    }
}

void sr_outflow_expired(sr_engine *e, sr_conn *c, sr_deadline_kind kind)
{
    switch (kind) {
    case SR_DEADLINE_HEAD:
        if (c->state == SR_CONN_IDLE && (c->preface || !sr_buffer_len(&c->in)))
            /* not one byte of a request came: there is nothing to answer */
            sr_outflow_close(e, c, idle_why(e, SR_CLOSED_HEAD));
        else
            sr_outflow_refuse(e, c, 408, false);
        break;
    case SR_DEADLINE_BODY: {
        uint64_t got = c->body->received - c->body->window;
        c->body->window = c->body->received;
        if ((double)got * (double)SR_SECOND >= (double)e->config.body_rate * (double)e->config.body_ns)
            sr_deadline_set(e, c, SR_DEADLINE_BODY);
        else
            sr_outflow_refuse(e, c, 408, c->parse && c->parse->is_head);
        break;
    }
    case SR_DEADLINE_IDLE:
        idle_over(e, c);
        break;
    case SR_DEADLINE_LOOK:
    case SR_DEADLINE_CALL:
    case SR_DEADLINE_STREAM:
    case SR_DEADLINE_QUEUE:
        if (c->slot && e->expired && e->expired(e->with, c, kind))
            break;
        sr_outflow_refuse(e, c, sr_account_waited(e), c->is_head);
        break;
    case SR_DEADLINE_WRITE:
        stalled(e, c);
        break;
    case SR_DEADLINE_LINGER:
        linger_over(e, c);
        break;
    case SR_DEADLINE_KINDS:
        sr_conn_close(e, c, c->why);
        break;
    }
}

/* --- sending --- */

/* What went out of iov; -1 when the peer is gone. Less than all: the socket is full. */
static ssize_t send_some(sr_conn *c, struct iovec *iov, int n, int more)
{
    size_t total = 0;
    while (n > 0) {
        struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)(n < IOV_BATCH ? n : IOV_BATCH)};
        size_t want = 0;
        for (size_t i = 0; i < msg.msg_iovlen; i++)
            want += iov[i].iov_len;
        int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (n > IOV_BATCH ? MSG_MORE : more);
        ssize_t sent = n == 1 ? send(c->source.fd, iov->iov_base, iov->iov_len, flags)
                              : sendmsg(c->source.fd, &msg, flags);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            return -1;
        if (sent < 0)
            break;
        total += (size_t)sent;
        if ((size_t)sent < want)
            break;
        iov += msg.msg_iovlen;
        n -= (int)msg.msg_iovlen;
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

static void keep(sr_engine *e, sr_conn *c, struct iovec *iov, int n, size_t skip, sr_keep where)
{
    if (!c->out && !(c->out = sr_output_new())) {
        lost(c, SR_CLOSED_ERROR);
        return;
    }
    e->pending -= sr_output_memory(c->out);
    if (where == SR_KEEP_BY_SIZE && e->pending > SR_OUTPUT_TOTAL)
        where = SR_KEEP_ON_DISK;
    if (!sr_output_keep(c->out, iov, n, skip, where, e->config.tmpdir)) {
        sr_trouble_count(e, SR_TROUBLE_SPOOL, 1, errno);
        lost(c, SR_CLOSED_ERROR); /* neither memory nor disk: the response can only be cut */
    }
    e->pending += sr_output_memory(c->out);
}

/* The helm is let go meanwhile. False: write_ns went by, or an error: it is lost. */
static bool wait_writable(sr_engine *e, sr_conn *c)
{
    int64_t end = sr_clock_monotonic() + e->config.write_ns;
    int unread = unacknowledged(c);
    /* a signal that comes just before poll does not interrupt it, but it wakes the engine */
    struct pollfd p[2] = {{.fd = c->source.fd, .events = POLLOUT}, {.fd = e->loop.wake.fd, .events = POLLIN}};
    int n;
    if (e->left) { /* an edge waits for nobody */
        lost(c, SR_CLOSED_WRITE);
        return false;
    }
    c->blocked = true;
    e->waiting = 1;
    sr_engine_lend(e);
    do {
        int64_t left = (end - sr_clock_monotonic() + SR_MILLISECOND - 1) / SR_MILLISECOND;
        n = left > 0 ? poll(p, 2, left < INT_MAX ? (int)left : INT_MAX) : 0;
        if (n > 0 && p[1].revents) {
            sr_loop_woken(&e->loop);
            n = -1;
            errno = EINTR;
        }
        if (n == 0 && unacknowledged(c) < unread) { /* no room yet, but the peer reads */
            unread = unacknowledged(c);
            end = sr_clock_monotonic() + e->config.write_ns;
            n = -1;
            errno = EINTR;
        }
    } while (n < 0 && errno == EINTR && (!e->interrupted || e->interrupted()));
    sr_engine_return(e);
    e->waiting = 0;
    c->blocked = false;
    c->active_at = e->now;
    if (n > 0 && !(p[0].revents & (POLLERR | POLLNVAL)))
        return true;
    lost(c, n == 0 ? SR_CLOSED_WRITE : SR_CLOSED_CLIENT);
    return false;
}

static bool flush_all(sr_engine *e, sr_conn *c)
{
    sr_flush r;
    while ((r = flush(e, c)) == SR_FLUSH_AGAIN)
        if (!wait_writable(e, c))
            return false;
    if (r != SR_FLUSH_DONE)
        lost(c, r == SR_FLUSH_SHORT ? SR_CLOSED_ERROR : SR_CLOSED_CLIENT);
    return !c->gone;
}

static void send_or_keep(sr_engine *e, sr_conn *c, struct iovec *iov, int n, int more)
{
    c->active_at = e->now;
    if (c->gone)
        return;
    ssize_t sent = c->out ? 0 : send_some(c, iov, n, more);
    if (sent < 0) {
        lost(c, SR_CLOSED_CLIENT);
    } else if ((size_t)sent < iov_bytes(iov, n)) {
        keep(e, c, iov, n, (size_t)sent, SR_KEEP_BY_SIZE);
        if (!c->gone && !e->left && c->out->file_left > SPOOL_MAX)
            flush_all(e, c);
    }
}

void sr_engine_send(sr_engine *e, sr_conn *c, struct iovec *iov, int n)
{
    send_or_keep(e, c, iov, n, 0);
}

void sr_engine_send_last(sr_engine *e, sr_conn *c, struct iovec *iov, int n)
{
    send_or_keep(e, c, iov, n, c->keep_alive ? 0 : MSG_MORE);
}

void sr_engine_send_file(sr_engine *e, sr_conn *c, struct iovec *head, int n, int fd, off_t offset,
                         uint64_t length)
{
    c->active_at = e->now;
    if (!c->gone && c->out && c->out->fd >= 0)
        flush_all(e, c); /* a file goes behind memory only */
    if (!c->gone)
        keep(e, c, head, n, 0, SR_KEEP_IN_MEMORY); /* and the file behind it */
    if (c->gone)
        close(fd);
    else
        sr_output_file(c->out, fd, offset, length);
}

bool sr_engine_write(sr_engine *e, sr_conn *c, struct iovec *iov, int n)
{
    c->active_at = e->now;
    if (c->gone || !flush_all(e, c))
        return false;
    for (;;) {
        ssize_t sent = send_some(c, iov, n, 0);
        if (sent < 0) {
            lost(c, SR_CLOSED_CLIENT);
            return false;
        }
        size_t skip = (size_t)sent;
        while (n > 0 && skip >= iov->iov_len) {
            skip -= iov->iov_len;
            iov++;
            n--;
        }
        if (n == 0)
            return true;
        iov->iov_base = (char *)iov->iov_base + skip;
        iov->iov_len -= skip;
        if (!wait_writable(e, c))
            return false;
    }
}

bool sr_engine_write_interim(sr_engine *e, sr_conn *c, struct iovec *iov, int n)
{
    bool ok = sr_engine_write(e, c, iov, n);
    sr_tally_add(&e->row->tally.responses[0], ok);
    c->sent = 0;
    return ok;
}
