#ifndef SR_PROTOCOL_H
#define SR_PROTOCOL_H
/*
 * protocol: what a connection speaks, as a table of calls. The edge and the other files of this folder deal
 * with requests and responses (exchange.h). How these look on the wire, where they end, and whether another
 * one may follow on the connection, is known to the protocol alone: HTTP/1.x (src/h1) or HTTP/2 (src/h2).
 * What is held stands between an exchange and these (src/live, src/websocket).
 *
 * Owner: a table is static. sr_conn.protocol is set when the connection enters the engine.
 * Closing: all calls but `head`, `piece` and `file` may close and free the connection, and with it the
 * exchange; of a held exchange (live/hold.c) `piece` as well.
 */
#include "engine.h"
#include "intake.h"

#include "../http/response.h"

/* A file that is the body, or the rest of it. */
typedef struct sr_content {
    int fd; /* owned by the call that gets it */
    off_t offset;
    uint64_t length;
    sr_parts *parts; /* more of it, see sr_output; NULL: there are none. Owned by that call as well */
} sr_content;

typedef struct sr_protocol {
    /* --- the connection --- */

    /*
     * It speaks this from now on. False: no memory, and the connection is as before. NULL: there is nothing
     * to do.
     */
    bool (*begin)(sr_engine *e, sr_conn *c);

    /*
     * It ends: ends its exchanges, and frees what the protocol keeps in c->session. Not called while that is
     * NULL.
     */
    void (*over)(sr_conn *c);

    /* In SR_CONN_STREAMS: no other request may begin. The connection ends when the last exchange is over. */
    void (*drain)(sr_engine *e, sr_conn *c);

    /*
     * Its socket has bytes, or some were read already. The caller calls `taken` or `refuse` for a task before
     * the next call.
     */
    sr_intake (*read)(sr_engine *e, sr_conn *c, sr_task *task);

    /* The task was copied: drops its bytes, and keeps those that follow for the next request. */
    void (*taken)(sr_engine *e, sr_exchange *x);

    /*
     * The socket accepts more bytes, or may: sends what is pending. True: its exchange goes on, and the
     * connection is there. False: it may be closed, or its response is over.
     */
    bool (*writable)(sr_engine *e, sr_conn *c);

    /* --- a response --- */

    /*
     * Its head. A final one is sent with what follows, so `piece`, `file` or sr_joined_flush comes next; an
     * interim one (102 to 199) at once, unless this client should get none. Of what is held for an extended
     * CONNECT, 101 is final: it opens the tunnel. `made` is the head as lines, until the next call. After an
     * error nothing was made.
     */
    sr_response_error (*head)(sr_engine *e, sr_exchange *x, const sr_head *h, sr_bytes *made);

    /* Bytes of the body, as far as they belong to it by its length; `last`: all of it was given. */
    void (*piece)(sr_engine *e, sr_exchange *x, sr_bytes body, bool last);

    /* The rest of the body is in a file, as far as the response has a body of a known length. */
    void (*file)(sr_engine *e, sr_exchange *x, const sr_content *content);

    /*
     * What its client has not taken of it; NULL: nothing, or not known apart from the rest of the connection.
     * Owned by the protocol.
     */
    sr_output *(*output)(const sr_exchange *x);

    /*
     * More of it will follow later: has the loop send what the socket has not accepted. False: the connection
     * is closed, or waits for its worker without being watched.
     */
    bool (*settle)(sr_engine *e, sr_exchange *x);

    /* The response is over: complete, unless it is shorter than its length. */
    void (*end)(sr_engine *e, sr_exchange *x);

    /* Of a held exchange, in SR_CONN_STREAMS: its client may send more again (sr_engine.came). */
    void (*more)(sr_engine *e, sr_exchange *x);

    /*
     * --- psgix.io of one exchange of several (pump.h). All NULL: the application gets the connection ---
     */

    /*
     * *theirs is a socket for the application, by which it answers and reads what the client sends. 0 or
     * errno.
     */
    int (*lend)(sr_engine *e, sr_exchange *x, int *theirs);

    /* Whether it has written there. Closes nothing, and ends no exchange. */
    bool (*spoken)(sr_engine *e, sr_exchange *x);

    /* An event of the pair, or the application has got its end. */
    void (*pumped)(sr_engine *e, sr_exchange *x);

    /* The application keeps it, and will not answer in another way: no worker has the request any more. */
    void (*detach)(sr_engine *e, sr_exchange *x);

    /* --- */

    /* It can't be completed: the client is to notice that something is missing. */
    void (*cut)(sr_engine *e, sr_exchange *x);

    /*
     * Answers with an error of the server's own, and no other request follows. The line in the access log is
     * that of the request at hand: of a source that was offered (accesslog.h), or of the bytes that were
     * read, with `rule`, static, which the request breaks; NULL: the parser knows. While a worker has the
     * request these bytes are of the next one, so who separates a request from its slot offers a source
     * first.
     */
    void (*refuse)(sr_engine *e, sr_exchange *x, int status, sr_refusal why, const char *rule);
} sr_protocol;

static inline void sr_exchange_refuse(sr_engine *e, sr_exchange *x, int status, sr_refusal why)
{
    x->protocol->refuse(e, x, status, why, NULL);
}

/*
 * How long responses may wait for others of their connection, while calls are so short that these come about
 * as soon: a write, with what follows from it at both ends, takes as long as ten short calls.
 */
#define SR_HOLD_NS (100 * 1000)
/*
 * A request that is older than this is one that takes long: others do not wait for it, a millisecond of the
 * loop each time.
 */
#define SR_HOLD_FOR_NS (100 * SR_MILLISECOND)

/* Whether more is about to come, to be sent with what is due. */
static inline bool sr_due_holds(const sr_engine *e, const sr_conn *c)
{
    if (!e->brisk || c->out || c->state != SR_CONN_STREAMS || (uint32_t)e->now - c->due_at >= SR_HOLD_NS ||
        e->draining)
        return false;
    for (const sr_exchange *x = c->exchange; x; x = x->older)
        if (x->slot && !x->status && e->now - x->ready_at < SR_HOLD_FOR_NS)
            return true;
    return false;
}

/*
 * Before the loop waits: sends what the protocols of connections have kept for the end of the step. Some may
 * have more at once.
 */
static inline void sr_due_send(sr_engine *e)
{
    sr_link now;
    sr_link_init(&now);
    while (!sr_link_alone(&e->holding))
        sr_link_append(&now, e->holding.next);
    while (!sr_link_alone(&e->due))
        sr_link_append(&now, e->due.next);
    while (!sr_link_alone(&now)) {
        sr_conn *c = SR_LIST_ENTRY(now.next, sr_conn, due);
        sr_link_remove(&c->due);
        if (sr_due_holds(e, c))
            sr_link_append(&e->holding, &c->due);
        else
            c->protocol->writable(e, c);
    }
}

/* Refuses what this connection asks for, also if it has not asked for anything. */
static inline void sr_conn_refuse(sr_engine *e, sr_conn *c, int status, sr_refusal why)
{
    sr_exchange *x = sr_exchange_begin_refused(e, c);
    if (x)
        c->protocol->refuse(e, x, status, why, NULL);
    else /* the exchange in reserve is in use: not even that can be said */
        sr_conn_close(e, c, SR_CLOSED_ERROR);
}

#endif
