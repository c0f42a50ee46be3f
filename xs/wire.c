#include "wire.h"

#include "accesslog.h"
#include "report.h"
#include "sirius.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

const char *wire_head_end(sirius *s, uint64_t known)
{
    sirius_wire *w = &s->turn.wire;
    sr_response *r = &w->response;
    w->flags = r->keep_alive ? 0 : SR_REPLY_CLOSE;
    sr_response_decide(r, known);
    if (sr_buffer_len(&s->head) > SR_REPLY_FIELDS_MAX)
        return "the header fields exceed 16 MiB";
    w->status = (uint32_t)r->status;
    w->left = r->framing == SR_FRAMING_LENGTH ? r->body_length : 0;
    w->longer = r->framing == SR_FRAMING_LENGTH && known != SR_LENGTH_UNKNOWN && known > r->body_length;
    return s->grip ? sirius_grip_take(s) : NULL;
}

static inline __attribute__((always_inline)) void reply(sirius *s, const struct iovec *body, int n,
                                                        uint64_t length, uint16_t flags)
{
    sirius_wire *w = &s->turn.wire;
    const sr_response *r = &w->response;
    sr_reply_head head = {.status = (uint16_t)r->status, .length = length, .app_length = r->app_length};
    if (w->interim_broken)
        return;
    sr_bytes fields = sr_bytes_of(sr_buffer_at(&s->head), sr_buffer_len(&s->head));
    if (!sr_worker_reply(&s->worker, &head, fields, body, n, flags | w->flags))
        w->gone = true;
}

/* Call before the last record of a reply. */
static void log_values(sirius *s)
{
#ifdef MULTIPLICITY
    dTHXa(s->owner);
#endif
    if (s->log)
        sirius_accesslog_say(aTHX_ s);
}

/* Call it once for a reply. */
static __attribute__((noinline)) void last(sirius *s, sr_reply_kind kind)
{
    if (kind == SR_REPLY_END && s->turn.wire.flags & SR_REPLY_STAYS)
        kind = SR_REPLY_HELD;
    log_values(s);
    sr_worker_say(&s->worker, kind);
}

static inline void say(sirius *s, sr_reply_kind kind)
{
    if (!s->turn.wire.said)
        last(s, kind);
    s->turn.wire.said = true;
}

/* --- heads --- */

static __attribute__((noinline)) void whole_stays(sirius *s, const struct iovec *body, int n, uint64_t known)
{
    reply(s, body, n, known, 0);
    if (!s->turn.wire.interim_broken)
        say(s, SR_REPLY_END);
}

void wire_whole(sirius *s, const struct iovec *body, int n, uint64_t known)
{
    if (s->turn.wire.flags & SR_REPLY_STAYS) {
        whole_stays(s, body, n, known);
        return;
    }
    log_values(s);
    reply(s, body, n, known, SR_REPLY_LAST);
    s->turn.wire.said = !s->turn.wire.interim_broken;
}

void wire_head(sirius *s, bool now)
{
    reply(s, NULL, 0, SR_REPLY_LENGTH_UNKNOWN, 0);
    if (now)
        sr_worker_flush(&s->worker);
}

enum { PIECE = 15 * 1024 }; /* fits into one record (share/ring.h) */

/*
 * Sends the bytes of a file whose descriptor can't be passed: the application could change it while it is
 * sent, and is about to go on; or the kernel has no memory, or too many descriptors of this user are in
 * flight.
 */
static bool read_out(sirius *s, int fd, off_t offset, uint64_t length)
{
    char piece[PIECE];
    while (length) {
        ssize_t n = pread(fd, piece, length < sizeof piece ? (size_t)length : sizeof piece, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        struct iovec iov = {piece, (size_t)n};
        if (!sr_worker_write(&s->worker, &iov, 1, false))
            return false;
        offset += n;
        length -= (uint64_t)n;
    }
    return true;
}

void wire_file(sirius *s, int fd, off_t offset, uint64_t length, uint64_t known)
{
    reply(s, NULL, 0, known, 0);
    if (s->turn.wire.interim_broken ||
        ((s->turn.wire.flags & SR_REPLY_STAYS || !sr_worker_file(&s->worker, fd, (uint64_t)offset, length)) &&
         !read_out(s, fd, offset, length)))
        s->turn.wire.gone = true;
}

/* --- streams --- */

void wire_data(sirius *s, sr_bytes bytes, bool wait)
{
    struct iovec iov = {(char *)(uintptr_t)bytes.at, bytes.len};
    if (s->turn.wire.interim_broken || !sr_worker_write(&s->worker, &iov, 1, wait))
        s->turn.wire.gone = true;
    if (!wait) /* the next bytes may take a while */
        sr_worker_flush(&s->worker);
}

void wire_nothing(sirius *s)
{
    if (!sr_worker_ask(&s->worker))
        s->turn.wire.gone = true;
}

void wire_end(sirius *s)
{
    say(s, SR_REPLY_END);
}

void wire_interim(sirius *s, int status, sr_bytes fields)
{
    sr_reply_head head = {.status = (uint16_t)status};
    s->turn.stream.writing = true;
    if (!sr_worker_reply(&s->worker, &head, fields, NULL, 0, 0))
        s->turn.wire.interim_broken = s->turn.wire.gone = true;
    s->turn.stream.writing = false;
    sr_worker_flush(&s->worker);
}

/* A body of another length than its Content-Length: the client sees that it is cut, or not even that. */
static __attribute__((noinline)) void report_length(pTHX_ sirius *s)
{
    const sirius_wire *w = &s->turn.wire;
    char text[128];
    if (w->longer) {
        snprintf(text, sizeof text, "the body is longer than its Content-Length, %llu: the rest was not sent",
                 (unsigned long long)w->response.body_length);
        sirius_warn(aTHX_ s, text);
    } else if (!w->gone) {
        snprintf(text, sizeof text,
                 "the body ended %llu bytes before its Content-Length: the response is cut",
                 (unsigned long long)w->left);
        sirius_log(aTHX_ s, text, NULL);
    }
}

static void finish(pTHX_ sirius *s, bool now)
{
    const sirius_wire *w = &s->turn.wire;
    sirius_phase phase = w->phase;
    if (w->status == 500 && !(w->flags & SR_REPLY_OWN))
        sirius_report_error(aTHX_ s);
    atomic_store_explicit(&s->row.of->status, phase == SIRIUS_UNANSWERED ? 0 : w->status,
                          memory_order_relaxed);
    say(s, w->interim_broken            ? SR_REPLY_CUT
           : phase == SIRIUS_ANSWERED   ? SR_REPLY_END
           : phase == SIRIUS_UNANSWERED ? SR_REPLY_TAKEN
                                        : SR_REPLY_CUT);
    if (now)
        sr_worker_flush(&s->worker);
    if (w->longer || (phase == SIRIUS_ANSWERED && w->left))
        report_length(aTHX_ s);
}

void sirius_finish(pTHX_ sirius *s, bool now)
{
    sirius_wire *w = &s->turn.wire;
    if (!s->turn.open) /* the responder or the writer has done it */
        return;
    /*
     * complete after all: HEAD, or the last byte of its Content-Length. The client may send the next request
     * already, which must not meet a close.
     */
    if ((w->phase == SIRIUS_STREAMING || w->phase == SIRIUS_BROKEN) && sirius_complete(w))
        w->phase = SIRIUS_ANSWERED;
    finish(aTHX_ s, now);
    s->turn.open = false;
}
