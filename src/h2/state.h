#ifndef SR_H2_STATE_H
#define SR_H2_STATE_H
/*
 * state: of HTTP/2 on one connection (RFC 9113), and of its streams. libnghttp2 knows frames, HPACK and flow
 * control; what its calls mean for exchanges is decided here and in the other files of this folder. It reads
 * frame by frame, so that one complete request comes out at a time, and writes when the loop has nothing else
 * to do in this step: what many streams have to say goes out together.
 *
 * Owner: the connection (sr_conn.session). A stream belongs to its session, from the first bytes of its head
 * until it is closed on both sides; its exchange may end before that.
 * Failure: an error of one stream resets it; one of the session ends the connection by GOAWAY.
 */
#include "../conn/account.h"
#include "../conn/protocol.h"
#include "../conn/pump.h"
#include "../http/priority.h"

#include <nghttp2/nghttp2.h>

/*
 * Clients may be slow to notice an announcement: one that had chosen the connection has written its request
 * within that time. As long as an idle connection of HTTP/1.1 stays open at a stop.
 */
#define SR_GOAWAY_NS SR_SECOND

typedef struct sr_session sr_session;

/* One stream, as sr_exchange.stream. */
typedef struct sr_h2_stream {
    sr_link link; /* in sr_session.streams */
    sr_session *session;
    sr_exchange *exchange; /* NULL: it is over, or has not begun, as the head is not complete */
    int32_t id;
    bool ended;    /* the client sends no more */
    bool taken;    /* the edge has the request */
    bool filed;    /* with its body in a file */
    bool answered; /* the head of the response was given to nghttp2 */
    bool deferred; /* nghttp2 asks for no more until it is told that there is more */
    bool last;     /* the edge has ended the response */
    bool finished; /* its last frame was sent */
    bool detached; /* nghttp2 has forgotten it, before the edge has ended the response */
    bool moved;    /* some of it was sent in this turn, so that its worker may go on */
    sr_priority priority;
    size_t withheld;     /* bytes of the client that it is not told of as taken, so that not too many come */
    int64_t stalls_at;   /* monotonic ns since which its window is full; 0: it is not */
    uint64_t sent, body; /* bytes of its frames, and of the body in them */
    sr_buffer head;      /* of a request whose body is being collected */
    sr_pump *pump;  /* psgix.io, see tunnel.h; NULL: nobody has asked for it, and nothing has come. Owned */
    sr_output *out; /* of the body, what was not sent; NULL: nothing. Owned */
} sr_h2_stream;

struct sr_session {
    nghttp2_session *ng;
    sr_engine *engine;
    sr_conn *conn;
    sr_link streams;
    uint32_t n_streams;
    size_t heads;       /* bytes of all sr_h2_stream.head */
    size_t passing;     /* bytes in all sr_pump.up */
    size_t informed;    /* bytes of interim responses since all heads were sent */
    uint32_t prefaced;  /* bytes of the preface that were read */
    uint32_t served;    /* requests of the connection when its time limit was last looked at */
    bool over;          /* nothing more is read */
    bool warned;        /* GOAWAY was announced, with a PING behind it */
    bool acked;         /* which the client has answered */
    bool drained;       /* GOAWAY was said: no other request begins */
    bool opens;         /* a header block is not complete */
    bool paused;        /* there is more to read, for which it is too full (session.h) */
    bool stalls;        /* a stream waits for the copy of a file (leased.h) */
    bool telling;       /* its streams are gone through: none is freed meanwhile */
    int64_t warned_at;  /* monotonic ns */
    bool updates;       /* the client sends PRIORITY_UPDATE, perhaps before the request */
    int32_t newest;     /* the highest number of a stream so far */
    uint64_t opened[4]; /* a bit for each of the 256 odd numbers up to the newest: whether it was a stream, */
    uint64_t reset[4];  /* which the server has reset */

    /* the head that is being read: header blocks do not interleave (RFC 9113 4.3) */
    sr_buffer block; /* pseudo-headers, and fields as lines; freed while no stream is there */
    sr_span method, path, authority, protocol;
    sr_buffer cookie;             /* clients may split it (RFC 9113 8.2.3) */
    uint32_t n_fields, fields_at; /* where in the block they begin */
    bool says_priority;           /* it has a field Priority: */
    sr_priority priority;
    bool parsed;     /* sr_arrivals.request is of it */
    int status;      /* to refuse it with; 0: it is fine so far */
    const char *why; /* static */

    /* flood.h */
    sr_link run_on; /* requests that workers run, though their streams are over */
    uint32_t credit, n_detached;
    uint32_t decoding; /* bytes of fields that were decoded in this turn of the connection */
    int64_t credit_at; /* monotonic ns up to which time has brought credit back */
    uint32_t pieces, coded,
        decoded; /* of the header block: CONTINUATION frames, bytes, bytes of its fields */

    sr_h2_stream *complete; /* its request is; NULL: none is. Read as soon as the frame is */
};

/* In the list of its session. NULL: no memory. */
sr_h2_stream *sr_stream_new(sr_session *s, int32_t id);
void sr_stream_free(sr_h2_stream *st); /* its exchange is over */

/*
 * Whether the connection of this exchange, which has just opened that file, has to do with the files that it
 * has beside it, as the last descriptors of this process are in use. With 128 streams each, few connections
 * would leave none to others.
 */
bool sr_stream_has_enough(sr_engine *e, const sr_exchange *x, int fd);

/* What is kept of the body of its response is sent, or nobody wants it. */
void sr_stream_drop_output(sr_h2_stream *st);

/* Closes psgix.io. */
void sr_stream_drop_pump(sr_h2_stream *st);

/*
 * So many bytes in its sr_pump.up have found their way. The stream has their credit again, as the connection
 * has since they came.
 */
void sr_stream_passed(sr_h2_stream *st, size_t n);

/* Keeps the head of its request, until the next call. False: no memory. */
bool sr_stream_keep_head(sr_h2_stream *st, sr_bytes head);

/* Nobody looks at its request any more. It has an exchange. */
void sr_stream_drop_request(sr_h2_stream *st);

/* As sr_exchange_abandon. A worker that has the request of this exchange goes on, which is noted. */
void sr_stream_abandon(sr_session *s, sr_exchange *x);

/*
 * The exchange of a stream has ended, as it should or not: it is counted and logged, and a worker that has it
 * is told.
 */
void sr_stream_over(sr_h2_stream *st, sr_over how);

/* The edge has ended the response of this stream, whose last frame was sent. */
void sr_stream_finish(sr_h2_stream *st);

/* No other request may begin: says so, and ends the connection when the last exchange is over. */
void sr_session_drain(sr_engine *e, sr_conn *c);

/*
 * Whether the connection has had the requests that it may have, and so many more. Browsers let requests fail
 * that wait for others of a connection when they are told that it ends, so that is said when it has rested
 * for SR_GOAWAY_NS; if it does not, after SR_SPENT_ANYWAY.
 */
enum { SR_SPENT_ANYWAY = 1000, SR_SPENT_MAX = 2000 };
bool sr_session_spent(const sr_session *s, uint32_t more);

/*
 * GOAWAY with the last stream that is served. The client hears before that one will come (RFC 9113 6.8), so
 * that what it sends meanwhile is served: a proxy can't repeat a request whose body it has sent.
 */
void sr_session_goaway(sr_session *s);

/*
 * Monotonic ns from which on that GOAWAY may come: SR_GOAWAY_NS after it was announced, and once the client
 * has answered the PING if it has streams. SR_NO_LIMIT: not now.
 */
int64_t sr_session_goaway_at(const sr_session *s);

/* Has the frames that wait sent at the end of this step of the loop. */
void sr_session_due(sr_session *s);

/* Resets this stream with an error code of HTTP/2. */
void sr_session_reset(sr_session *s, int32_t id, uint32_t error);

/*
 * nghttp2 has returned this when a frame was given to it. Without memory the client would wait for it for
 * ever, so the connection ends.
 */
void sr_session_submitted(sr_session *s, int err);

static inline sr_session *sr_session_of(const sr_conn *c)
{
    return c->session;
}

#endif
