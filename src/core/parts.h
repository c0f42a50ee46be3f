#ifndef SR_PARTS_H
#define SR_PARTS_H
/* parts: what the files of src/core use of each other and nobody else may. All need the helm. */
#include "../base/clock.h"
#include "engine.h"

enum { SR_OVERDUE_LINE = 511 }; /* bytes; a pipe takes them in one piece */

/* connection.c */
void sr_conn_enter(sr_engine *e,
                   sr_conn *c); /* into the lists and counts; an idle one may be closed for it */
bool sr_conn_watch(
    sr_engine *e, sr_conn *c,
    uint32_t events); /* false: epoll_ctl failed; the connection is closed, unless it is SERVING */
void sr_conn_unwatch(sr_engine *e, sr_conn *c);
static inline void sr_conn_leave(sr_engine *e,
                                 sr_conn *c) /* nobody waits for the reply of a worker any more */
{
    if (c->slot && e->left)
        e->left(e->with, c);
}
bool sr_conn_reset(
    const sr_conn *c); /* now; it stays open here. False: a unix socket, which can't be reset */
void sr_conn_close(sr_engine *e, sr_conn *c, sr_closed why); /* what is owed counts as aborted */
void sr_conn_forget(sr_engine *e,
                    sr_conn *c); /* frees it and closes our descriptor, but does not end the connection */
/* account.c: what became of each request */
typedef enum sr_over {
    SR_OVER_WHOLE,   /* the kernel has the last byte of the response */
    SR_OVER_ABORTED, /* the client does not get it, or not all of it */
    SR_OVER_TAKEN,   /* the application goes on alone with the socket */
} sr_over;
void sr_account_over(sr_engine *e, sr_conn *c, sr_over how); /* does nothing when nothing is owed */
/* A complete request has waited for too long, which is counted. The status of its refusal */
int sr_account_waited(sr_engine *e);
/* The server itself answers, with these bytes that are sent next. To be called in the state that is refused */
void sr_account_refuse(sr_conn *c, int status, sr_bytes response);

/* accesslog.c. With a log: */
void sr_accesslog_keep(sr_engine *e, sr_conn *c); /* what was offered is not used up: for later */
void sr_accesslog_refuse(sr_engine *e, sr_conn *c, sr_bytes response); /* before its bytes are forgotten */
void sr_accesslog_over(sr_engine *e, sr_conn *c, bool aborted);        /* its line */
/* With or without: */
void sr_accesslog_forget(sr_conn *c);
void sr_accesslog_flush(sr_engine *e); /* now */
void sr_accesslog_timer(sr_engine *e); /* its timer has run down */
void sr_accesslog_end(sr_engine *e);

/* engine.c */
void sr_engine_tick(sr_engine *e);               /* reads the clock */
void sr_engine_pause(sr_engine *e);              /* no descriptor or memory: both are left alone for 100 ms */
void sr_engine_resume(sr_engine *e);             /* when that time is over; before a wait */
void sr_engine_listeners(sr_engine *e, bool on); /* into the epoll set, or out of it */
void sr_engine_queues(sr_engine *e, bool on);    /* listeners and exchange into the epoll set, or out of it */
bool sr_engine_gives(const sr_engine *e);        /* and colleagues go on: what can move is given to them */

typedef enum sr_intake {
    SR_INTAKE_WAIT,  /* nothing to serve; the connection waits for events, or is closed */
    SR_INTAKE_READY, /* a complete request: task is filled */
} sr_intake;
sr_intake sr_engine_event(sr_engine *e, sr_source *s, sr_task *task, bool *wake);

/* turn.c */
void sr_turn_change(sr_engine *e);
void sr_turn_begin(sr_engine *e, const sr_task *task); /* it goes to the application */
bool sr_turn_end(sr_engine *e); /* the application has no request any more; true: so the worker retires */
void sr_row_publish(sr_engine *e, sr_worker_state state); /* engine.c: what others see of this worker */

/* deadline.c */
void sr_deadline_set(sr_engine *e, sr_conn *c, sr_deadline_kind kind); /* its whole time from now on */
void sr_deadline_keep(sr_engine *e, sr_conn *c, sr_deadline_kind kind,
                      int64_t deadline); /* one that runs already */
void sr_deadline_clear(sr_engine *e, sr_conn *c);
void sr_deadline_shorten(sr_engine *e, sr_deadline_kind kind,
                         int64_t limit); /* as if it had always been so */
int64_t sr_deadline_first(const sr_engine *e,
                          sr_deadline_kind kind); /* of the one that is due first; 0: none */
void sr_deadlines_expire(sr_engine *e);
int sr_deadlines_timeout(sr_engine *e); /* ms until something is due, for epoll_wait */

/* client.c: who a request comes from when proxies stand in front */
typedef enum sr_preface {
    SR_PREFACE_MORE, /* what is here is kept; or it was read, and nothing is behind it */
    SR_PREFACE_DONE, /* view is what is behind it */
    SR_PREFACE_BAD,  /* the connection is to be closed without an answer */
} sr_preface;
bool sr_client_welcome(const sr_engine *e, const sr_peer *peer); /* it may connect */
/* For a connection with c->preface; `borrowed`: view is not in c->in. Sets the peer. */
sr_preface sr_client_preface(sr_conn *c, sr_bytes *view, bool borrowed);
/* c->client is the peer, and here becomes whom trusted proxies name. What else they say; NULL: nothing. */
/* By which a head of this connection is parsed. Its peer is known. */
static inline sr_request_limits sr_client_limits(const sr_engine *e, const sr_conn *c)
{
    sr_request_limits limits = e->config.request;
    if (e->config.trusted_underscores && !sr_cidrs_have(&e->config.trusted, &c->peer))
        limits.underscores = false;
    return limits;
}

const sr_forwarded *sr_client_forwarded(sr_engine *e, sr_conn *c, const sr_request *r, const char *base);

/* handover.c */
bool sr_handover_can_move(const sr_conn *c);
typedef enum sr_given {
    SR_GIVEN,
    SR_GIVEN_LATER,
    SR_GIVEN_NEVER
} sr_given; /* GIVEN: gone from here; LATER: full */
sr_given sr_handover_give(sr_engine *e, sr_conn *c);
bool sr_handover_give_idle(sr_engine *e, int most); /* true: none is left */
bool sr_handover_give_turns(sr_engine *e);          /* true: none is left */
bool sr_handover_give_heads(sr_engine *e); /* heads that have begun, and connections that never sent a byte */
bool sr_handover_take(sr_engine *e);       /* one message; false: there is none */
/*
 * The same, but a request only when it has waited too long, or when this thread can serve it and it is older than the
 * first that waits here: to take one and to give it back would put it behind those that came after it. False: nothing
 * was taken.
 */
bool sr_handover_take_due(sr_engine *e, bool serving);
/* Others have waited for longer than a request that is complete just now: it has to queue behind them. */
bool sr_handover_others_wait(const sr_engine *e);

/* surplus.c */
void sr_surplus_window(sr_engine *e, int64_t idle);
void sr_surplus_share(sr_engine *e);
int sr_surplus_colleagues(const sr_engine *e,
                          int64_t since); /* workers that have waited for events since then */

/* drain.c */
bool sr_drain_step(sr_engine *e); /* true: no connection is left */

/* room.c: not more connections than there may be */
bool sr_room_make(
    sr_engine *e); /* for one that was just accepted; false: all are in use, it must be refused */
bool sr_room_close_oldest(sr_engine *e); /* false: none is idle here */
void sr_room_asked(sr_engine *e);        /* the bell has rung */
void sr_room_init(sr_engine *e);
void sr_room_taken(sr_engine *e, int fd); /* the connection that entered last has got this descriptor */
int sr_room_message(const sr_engine *e);  /* connections that may move in one message; 1 to SR_PARCELS_MAX */
void sr_room_recount(sr_engine *e);       /* before newcomers are let in again */

/* overdue.c: the time limit of a request that is with the application */
int64_t sr_overdue_at(const sr_engine *e); /* monotonic ns; INT64_MAX: never */
/*
 * The companion: when it is over, ends the response. Returns the bytes of the line for sr_overdue_tell that `line`
 * was filled with; 0: it is not over.
 */
size_t sr_overdue_look(sr_engine *e, char line[SR_OVERDUE_LINE]);
void sr_overdue_tell(const sr_engine *e, const char *line, size_t len); /* may block; without the helm */

/* trouble.c: what the operator is to be told */
void sr_trouble_count(sr_engine *e, sr_trouble what, uint64_t by, int err); /* err: 0, or why */
void sr_trouble_refused(sr_engine *e, const sr_conn *c, int status);        /* in the state that is refused */
void sr_trouble_ring(sr_engine *e);               /* it may be too much: the supervisor is to look */
void sr_trouble_waited(sr_engine *e, int64_t ns); /* a request, before it was served */

/* companion.c */
void sr_companion_unpark(sr_engine *e);
void sr_companion_nudge(sr_engine *e);

/* intake.c: from readable to a complete request */
sr_intake sr_intake_accept(sr_engine *e, sr_listener *l, sr_task *task);
sr_intake sr_intake_readable(sr_engine *e, sr_conn *c, sr_task *task);
sr_intake sr_intake_turn(sr_engine *e, sr_conn *c,
                         sr_task *task); /* bytes or a request are in hand already */
/* Bytes of a request, maybe no whole one: no body in the answer, even when it is refused (RFC 9110 9.3.2) */
bool sr_intake_is_head(sr_bytes view);
void sr_intake_park(sr_engine *e,
                    sr_task *task); /* nobody can serve it now: it waits in READY, or is refused */

void sr_intake_queue(sr_engine *e, sr_conn *c); /* into e->turns, by the time since which it waits */

/* outflow.c: from a response to the wire, and the end of connections */
void sr_outflow_writable(sr_engine *e, sr_conn *c);
/*
 * Of the connection in SERVING: a part of its response is pending, and the application goes on. What the socket does not
 * take now, the companion sends when it does.
 */
void sr_outflow_behind(sr_engine *e, sr_conn *c);
void sr_outflow_serving(sr_engine *e, sr_conn *c); /* it takes more, or is gone */
/* Flushes what is pending of a response that more will follow. False: the connection is closed */
bool sr_outflow_pending(sr_engine *e, sr_conn *c);
void sr_outflow_refuse(sr_engine *e, sr_conn *c, int status, bool is_head);
void sr_outflow_close(sr_engine *e, sr_conn *c, sr_closed why); /* politely: shut down our side and linger */
void sr_outflow_end(sr_engine *e, sr_conn *c,
                    bool close_after); /* flush what is pending; then close, or keep the connection */
void sr_outflow_lingering(sr_engine *e, sr_conn *c);
void sr_outflow_expired(sr_engine *e, sr_conn *c, sr_deadline_kind kind);

#endif
