#ifdef SR_HTTP2

#include "read.h"

#include "../conn/trouble.h"
#include "request.h"

#include <errno.h>

/* Of one connection, until others have their turn */
enum {
    FRAMES = 500,
    FIELDS = 256 * 1024, /* bytes, of which HPACK may make many of few */
};

/*
 * Feeds whole frames until a request is complete. Returns the bytes used; -1: the connection can't go on.
 * `rest`: others come first, but there may be more.
 */
static ssize_t feed(sr_session *s, sr_bytes in, bool *rest)
{
    size_t used = 0;
    int frames = 0;
    *rest = false;
    s->decoding = s->engine->intake.frames = 0;
    while (!s->complete && used < in.len) {
        *rest = frames++ == FRAMES || s->engine->intake.frames > FRAMES || s->decoding > FIELDS;
        if (*rest)
            break;
        ssize_t n = sr_session_feed(s, sr_bytes_of(in.at + used, in.len - used));
        if (n < 0)
            return -1;
        if (!n)
            break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

/* Reads into scratch. 0: the client has ended its side; -1 with errno. */
static ssize_t receive(sr_engine *e, sr_conn *c)
{
    ssize_t n;
    do
        n = sr_transport_read(c->transport, c->source.fd, e->intake.scratch, SR_SCRATCH);
    while (n < 0 && errno == EINTR);
    return n;
}

/* GOAWAY says why, if the client still reads. */
static sr_intake give_up(sr_engine *e, sr_conn *c)
{
    sr_session_of(c)->over = true;
    c->why = SR_CLOSED_REFUSED;
    sr_conn_used(c, sr_buffer_len(&c->in));
    sr_session_due(sr_session_of(c));
    sr_conn_unwatch(e, c);
    return SR_INTAKE_WAIT;
}

static sr_intake wait_for_more(sr_engine *e, sr_conn *c, bool rest)
{
    sr_session_due(sr_session_of(c)); /* which watches it */
    if (rest || sr_transport_holds(c->transport))
        sr_link_append(&e->intake.buffered, &c->buffered);
    return rest ? SR_INTAKE_LATER : SR_INTAKE_WAIT;
}

static sr_intake ready(sr_engine *e, sr_conn *c, sr_task *task)
{
    sr_request_give(sr_session_of(c), task);
    if (sr_buffer_len(&c->in) || sr_transport_holds(c->transport))
        sr_link_append(&e->intake.buffered, &c->buffered);
    return SR_INTAKE_READY;
}

sr_intake sr_h2_read(sr_engine *e, sr_conn *c, sr_task *task)
{
    sr_session *s = c->session;
    bool rest;
    if (s->over || sr_session_full(s)) {
        s->paused = !s->over;
        sr_session_due(s);
        return SR_INTAKE_WAIT;
    }
    if (sr_buffer_len(&c->in)) {
        ssize_t used = feed(s, sr_bytes_of(sr_buffer_at(&c->in), sr_buffer_len(&c->in)), &rest);
        if (used < 0)
            return give_up(e, c);
        sr_conn_used(c, (size_t)used);
        if (s->complete)
            return ready(e, c, task);
        if (rest)
            return wait_for_more(e, c, rest);
    }
    ssize_t n = receive(e, c);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return wait_for_more(e, c, false);
    if (n <= 0) {
        if (n < 0)
            sr_trouble_lost(e, errno);
        sr_conn_close(e, c, SR_CLOSED_CLIENT);
        return SR_INTAKE_WAIT;
    }
    sr_bytes in = sr_bytes_of(e->intake.scratch, (size_t)n);
    bool kept = sr_buffer_len(&c->in) > 0;
    if (kept) {
        if (!sr_buffer_add_bytes(&c->in, in))
            return give_up(e, c);
        in = sr_bytes_of(sr_buffer_at(&c->in), sr_buffer_len(&c->in));
    }
    ssize_t used = feed(s, in, &rest);
    if (used < 0)
        return give_up(e, c);
    if (kept)
        sr_conn_used(c, (size_t)used);
    else if (!sr_buffer_add(&c->in, in.at + used, in.len - (size_t)used))
        return give_up(e, c);
    return s->complete ? ready(e, c, task) : wait_for_more(e, c, rest);
}

void sr_h2_taken(sr_engine *e, sr_exchange *x)
{
    sr_h2_stream *st = x->stream;
    st->taken = true;
    if (!x->is_own) /* the edge answers it itself, and the line of the access log is made at the end */
        sr_stream_drop_request(st);
    e->intake.current = NULL;
    sr_session_due(st->session);
}

#endif
