#include "wire.h"

static const char no_date[SR_DATE_LEN];

bool wire_keeps(const sirius *s)
{
    return wire_is_edge(s) || sr_engine_keeps(s->engine, s->turn.conn);
}

/* --- to the edge --- */

/* The fields of the application, between the status line and what finish has put behind them. */
static sr_bytes fields(const sirius *s)
{
    const char *head = sr_buffer_at(&s->head);
    const char *line = memchr(head, '\n', s->fields_end);
    size_t from = line ? (size_t)(line - head) + 1 : s->fields_end;
    return sr_bytes_of(head + from, s->fields_end - from);
}

static void reply(sirius *s, const struct iovec *body, int n, uint64_t length, uint16_t flags)
{
    const sr_response *r = &s->turn.response;
    sr_reply_head head = {.status = (uint16_t)r->status, .length = length, .app_length = r->app_length};
    if (s->app_close)
        flags |= SR_REPLY_CLOSE;
    if (!sr_worker_reply(&s->worker, &head, fields(s), body, n, flags))
        s->turn.conn->gone = true;
}

static void say(sirius *s, sr_reply_kind kind)
{
    if (!s->said)
        sr_worker_say(&s->worker, kind);
    s->said = true;
}

/* --- heads --- */

const char *wire_head_end(sirius *s, uint64_t known)
{
    sirius_turn *t = &s->turn;
    sr_response *r = &t->response;
    bool edge = wire_is_edge(s);
    s->fields_end = sr_buffer_len(&s->head);
    s->app_close = !r->keep_alive;
    s->known = known;
    sr_response_error err = sr_response_finish(r, &s->head, known, edge ? no_date : s->engine->date,
                                               edge ? (sr_bytes){0} : s->engine->config.server);
    if (err)
        return sr_response_error_text(err);
    if (edge && s->fields_end > SR_REPLY_FIELDS_MAX)
        return "the header fields have more than 16 MiB";
    t->conn->keep_alive = r->keep_alive;
    sr_engine_head(t->conn, r->status, sr_buffer_len(&s->head));
    t->left = r->framing == SR_FRAMING_LENGTH ? r->body_length : 0;
    return NULL;
}

static struct iovec head_iov(sirius *s)
{
    return (struct iovec){sr_buffer_at(&s->head), sr_buffer_len(&s->head)};
}

void wire_whole(sirius *s, struct iovec *iov, int n, bool last)
{
    if (wire_is_edge(s)) {
        reply(s, iov + 1, n - 1, s->known, SR_REPLY_LAST);
        s->said = true;
    } else if (last) {
        sr_engine_send_last(s->engine, s->turn.conn, iov, n);
    } else { /* called by a responder: nobody knows when the application returns */
        sr_engine_send(s->engine, s->turn.conn, iov, n);
    }
}

void wire_head(sirius *s, bool now)
{
    struct iovec head = head_iov(s);
    if (wire_is_edge(s)) {
        reply(s, NULL, 0, SR_REPLY_LENGTH_UNKNOWN, 0);
        if (now)
            sr_worker_flush(&s->worker);
    } else if (now) {
        sr_engine_write(s->engine, s->turn.conn, &head, 1);
    } else {
        sr_engine_send(s->engine, s->turn.conn, &head, 1);
    }
}

void wire_file(sirius *s, int fd, off_t offset, uint64_t length)
{
    struct iovec head = head_iov(s);
    if (!wire_is_edge(s)) {
        sr_engine_send_file(s->engine, s->turn.conn, &head, 1, fd, offset, length);
        return;
    }
    reply(s, NULL, 0, s->known, 0);
    if (!sr_worker_file(&s->worker, fd, (uint64_t)offset, length))
        s->turn.conn->gone = true;
    close(fd);
}

/* --- streams --- */

void wire_data(sirius *s, sr_bytes bytes, bool wait)
{
    sirius_turn *t = &s->turn;
    char size[18];
    struct iovec iov[3] = {{size, 0}, {(char *)(uintptr_t)bytes.at, bytes.len}, {"\r\n", 2}};
    if (wire_is_edge(s)) {
        if (!sr_worker_write(&s->worker, &iov[1], 1, wait))
            t->conn->gone = true;
        if (!wait) /* the next bytes may take their time */
            sr_worker_flush(&s->worker);
        return;
    }
    bool chunked = t->response.framing == SR_FRAMING_CHUNKED;
    if (chunked)
        iov[0].iov_len = sr_chunk_head(size, bytes.len);
    struct iovec *first = chunked ? iov : iov + 1;
    int n = chunked ? 3 : 1;
    if (wait)
        sr_engine_write(s->engine, t->conn, first, n);
    else
        sr_engine_send(s->engine, t->conn, first, n);
}

void wire_end(sirius *s)
{
    struct iovec end = {"0\r\n\r\n", 5};
    if (wire_is_edge(s))
        say(s, SR_REPLY_END);
    else if (s->turn.response.framing == SR_FRAMING_CHUNKED)
        sr_engine_send(s->engine, s->turn.conn, &end, 1);
}

void wire_interim(sirius *s, sr_bytes text)
{
    struct iovec iov = {(char *)(uintptr_t)text.at, text.len};
    if (!wire_is_edge(s)) {
        sr_engine_write_interim(s->engine, s->turn.conn, &iov, 1);
        return;
    }
    /* "HTTP/1.1 103 Early Hints\r\n", fields, "\r\n" */
    const char *line = memchr(text.at, '\n', text.len);
    sr_reply_head head = {
        .status = (uint16_t)((text.at[9] - '0') * 100 + (text.at[10] - '0') * 10 + text.at[11] - '0')};
    size_t from = (size_t)(line - text.at) + 1;
    sr_worker_reply(&s->worker, &head, sr_bytes_of(text.at + from, text.len - from - 2), NULL, 0, 0);
    sr_worker_flush(&s->worker);
}

void wire_finish(pTHX_ sirius *s, sr_conn *c)
{
    sirius_phase phase = s->turn.phase;
    PERL_UNUSED_CONTEXT;
    if (wire_is_edge(s)) {
        say(s, phase == SIRIUS_ANSWERED     ? SR_REPLY_END
               : phase == SIRIUS_UNANSWERED ? SR_REPLY_TAKEN
                                            : SR_REPLY_CUT);
        if (!s->returned) /* the application goes on, and may do so for long */
            sr_worker_flush(&s->worker);
    } else if (phase == SIRIUS_ANSWERED) {
        sr_engine_finish(s->engine, c);
    } else if (phase == SIRIUS_UNANSWERED) {
        sr_engine_detach(s->engine, c); /* psgix.io: the application went on alone with the socket */
    } else {
        sr_engine_abort(s->engine, c);
    }
}
