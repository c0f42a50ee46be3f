/*
 * overdue: the time limit of a request that is with the application. Nothing can end the call itself, but the client
 * need not wait for it, and the worker must not be lost to others: the companion sends a 504, or cuts a response
 * that has begun, gives the other connections away and tells the supervisor, which kills the worker.
 *
 * The connection stays the Perl thread's until sr_engine_finish, abort or detach, as does its descriptor: only what
 * is under it ends here.
 */
#include "../base/decimal.h"
#include "parts.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CLIENT_GONE = 499, /* in the row of a worker that is about to be killed: nobody waits for an answer */
    TENTH = 100,       /* ms */
    THROWN_READS = 4,
    TARGET_ROOM = 400, /* of a line; the rest is for the words around it */
};

int64_t sr_overdue_at(const sr_engine *e)
{
    const sr_conn *c = e->serving;
    /* borrowed: a conversation of the application's own. blocked: the peer is slow, and has write_ns */
    if (!c || c->cut || c->borrowed || c->blocked)
        return INT64_MAX;
    if (!c->sent)
        return e->config.request_ns ? c->ready_at + e->config.request_ns : INT64_MAX;
    return e->config.stream_ns && !c->whole ? c->active_at + e->config.stream_ns : INT64_MAX;
}

/* --- the line --- */

static char *put(char *to, const char *text)
{
    size_t len = strlen(text);
    memcpy(to, text, len);
    return to + len;
}

static char *put_number(char *to, uint64_t n)
{
    char digits[SR_DECIMAL_MAX];
    sr_bytes text = sr_decimal(digits + sizeof digits, n);
    memcpy(to, text.at, text.len);
    return to + text.len;
}

static char *put_seconds(char *to, int64_t ns)
{
    uint64_t tenths = (uint64_t)(ns / (TENTH * SR_MILLISECOND));
    to = put_number(to, tenths / 10);
    *to++ = '.';
    to = put_number(to, tenths % 10);
    return put(to, " s, ");
}

/* "PID timeout GET /path ran for 60.0 s, the client got 504"; without a supervisor it is a line of the log. */
static size_t describe(const sr_engine *e, char line[SR_OVERDUE_LINE], const char *what, int64_t ns,
                       const char *end)
{
    bool told = e->config.report_fd >= 0;
    sr_row_request request;
    char *to = put(line, told ? "" : "[sirius ");
    to = put_number(to, (uint64_t)getpid());
    to = put(to, told ? " timeout " : "] error: ");
    if (sr_row_read(e->row, &request))
        to += sr_row_text(&request, to, TARGET_ROOM);
    to = put(to, what);
    to = put_seconds(to, ns);
    to = put(to, end);
    *to++ = '\n';
    return (size_t)(to - line);
}

/* By hand: it must neither allocate nor lock anything that a child of the application could find locked. */
void sr_overdue_tell(const sr_engine *e, const char *line, size_t len)
{
    int fd = e->config.report_fd >= 0 ? e->config.report_fd : STDERR_FILENO;
    while (write(fd, line, len) < 0 && errno == EINTR)
        ;
}

/* --- the end --- */

/* Its bytes; 0: it could not be sent. The socket is empty unless the client leaves an earlier response unread. */
static size_t send_504(sr_engine *e, sr_conn *c)
{
    sr_buffer out;
    sr_buffer_init(&out);
    size_t sent = 0;
    if (!c->gone && !c->torn && sr_response_refusal(&out, 504, c->is_head, e->date, e->config.server)) {
        sr_bytes all = sr_bytes_of(sr_buffer_at(&out), sr_buffer_len(&out));
        if (send(c->source.fd, all.at, all.len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)all.len) {
            sent = all.len;
            sr_account_refuse(c, 504, all);
        }
    }
    sr_buffer_free(&out);
    return sent;
}

/* The client sees the end now; the descriptor stays open, for the Perl thread may be using it. */
static void end(sr_engine *e, sr_conn *c, bool reset, sr_over how)
{
    if (!reset || !sr_conn_reset(c))
        shutdown(c->source.fd, SHUT_WR);
    /* unread bytes would make a reset of the close, should the worker be killed */
    for (int i = 0; i < THROWN_READS && recv(c->source.fd, e->scratch, SR_SCRATCH, MSG_DONTWAIT) > 0; i++)
        ;
    c->cut = c->gone = true;
    c->back_at = e->now;
    atomic_store_explicit(&e->row->status, c->status ? c->status : CLIENT_GONE, memory_order_relaxed);
    sr_account_over(e, c, how);
}

/* Somebody will end this worker: whatever else is here moves away first. */
static void leave(sr_engine *e)
{
    if (e->config.report_fd < 0)
        return;
    e->retiring = true;
    e->reason = SR_REASON_OVERDUE;
}

size_t sr_overdue_look(sr_engine *e, char line[SR_OVERDUE_LINE])
{
    if (sr_overdue_at(e) > e->now)
        return 0;
    sr_conn *c = e->serving;
    size_t len;
    sr_tally_add(&e->row->tally.limited[c->sent ? SR_LIMIT_STREAM : SR_LIMIT_REQUEST], 1);
    if (c->sent) {
        len = describe(e, line, " stream stood still for ", e->now - c->active_at, "cut");
        c->why = SR_CLOSED_ERROR;
        end(e, c, c->minor == 0, SR_OVER_ABORTED); /* its end is the only frame a 1.0 client may have */
    } else {
        c->why = SR_CLOSED_CLIENT;
        c->sent = send_504(e, c);
        len = describe(e, line, " ran for ", e->now - c->ready_at,
                       c->sent ? "the client got 504" : "the client was gone");
        end(e, c, false, c->sent ? SR_OVER_WHOLE : SR_OVER_ABORTED);
    }
    leave(e);
    return len;
}
