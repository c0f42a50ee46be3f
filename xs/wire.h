#ifndef SIRIUS_WIRE_H
#define SIRIUS_WIRE_H
/*
 * wire: where a response goes: to the connection, which the engine of this very process has, or as records to the edge
 * (src/worker), which has all connections. The files around ask here and know neither.
 *
 * The response is that of s->turn. With the helm, where there is one.
 */
#include "sirius.h"

/* Does this process have the connections itself? */
static inline bool wire_is_edge(const sirius *s)
{
    return s->worker.sleepers != NULL;
}

/* What must not be jumped out of is going on: handlers of signals have to wait. */
static inline bool wire_inside(const sirius *s)
{
    return wire_is_edge(s) ? s->inside && !s->forked : sr_engine_inside(s->engine);
}

/* In this process nothing may be said or served: it is a child that the application has forked. */
static inline bool wire_forked(const sirius *s)
{
    return wire_is_edge(s) ? s->forked : sr_engine_forked(s->engine);
}

/* As wire_inside, or the server's own log is being written. */
static inline bool sirius_busy(const sirius *s)
{
    return wire_inside(s) || (s->logging && !wire_forked(s));
}

static inline bool wire_keeps(const sirius *s) /* as far as this process knows, the connection may be kept */
{
    return wire_is_edge(s) || sr_engine_keeps(s->engine, s->turn.conn);
}

/* Begins a head in s->head, which is empty: with its status line, or for an edge without. */
static inline sr_response_error wire_head_begin(sirius *s, int status)
{
    const sr_conn *c = s->turn.conn;
    sr_response *r = &s->turn.response;
    return wire_is_edge(s) ? sr_response_begin(r, status, c->minor, c->is_head, true)
                           : sr_response_init(r, &s->head, status, c->minor, c->is_head, wire_keeps(s));
}

/* The fields are in s->head; what the server adds follows, unless an edge does that. False: why, static */
static inline const char *wire_head_end(sirius *s, uint64_t known)
{
    sirius_turn *t = &s->turn;
    sr_response *r = &t->response;
    if (wire_is_edge(s)) {
        s->app_close = !r->keep_alive;
        s->known = known;
        sr_response_decide(r, known);
        if (sr_buffer_len(&s->head) > SR_REPLY_FIELDS_MAX)
            return "the header fields have more than 16 MiB";
    } else {
        sr_response_error err =
            sr_response_finish(r, &s->head, known, s->engine->date, s->engine->config.server);
        if (err)
            return sr_response_error_text(err);
    }
    t->conn->keep_alive = r->keep_alive;
    sr_engine_head(t->conn, r->status, sr_buffer_len(&s->head));
    t->left = r->framing == SR_FRAMING_LENGTH ? r->body_length : 0;
    return NULL;
}

void wire_whole_edge(sirius *s, const struct iovec *body, int n);
static inline void wire_whole(sirius *s, struct iovec *iov, int n,
                              bool last) /* head in iov[0], then all of the body */
{
    if (wire_is_edge(s))
        wire_whole_edge(s, iov + 1, n - 1);
    else if (last)
        sr_engine_send_last(s->engine, s->turn.conn, iov, n);
    else /* called by a responder: nobody knows when the application returns */
        sr_engine_send(s->engine, s->turn.conn, iov, n);
}

void wire_head(sirius *s, bool now); /* the head alone: a stream follows */
/* The head, and a file behind it, which is taken over. */
void wire_file(sirius *s, int fd, off_t offset, uint64_t length);
/* Of a stream: bytes as the application gave them, not more than are announced. `wait`: not far ahead of its client. */
void wire_data(sirius *s, sr_bytes bytes, bool wait);
void wire_end(sirius *s);                    /* of a stream, behind its last byte */
void wire_interim(sirius *s, sr_bytes text); /* a whole interim head */

void wire_finish_edge(sirius *s);
static inline void wire_finish(sirius *s,
                               sr_conn *c) /* by the phase of the turn: kept, cut, or the application's */
{
    sirius_phase phase = s->turn.phase;
    if (wire_is_edge(s))
        wire_finish_edge(s);
    else if (phase == SIRIUS_ANSWERED)
        sr_engine_finish(s->engine, c);
    else if (phase == SIRIUS_UNANSWERED)
        sr_engine_detach(s->engine, c); /* psgix.io: the application went on alone with the socket */
    else
        sr_engine_abort(s->engine, c);
}

#endif
