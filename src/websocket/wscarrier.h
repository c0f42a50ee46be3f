#ifndef SR_WSCARRIER_H
#define SR_WSCARRIER_H
/*
 * wscarrier: what a WebSocket sends to its client.
 *
 * All functions here may end the WebSocket for its client: ws->carrier is NULL then, and the state is OVER.
 * They return false in that case.
 */
#include "websocket.h"

/* Sends bytes of whole frames, which answer the client. */
bool sr_wscarrier_put(sr_websocket *ws, sr_bytes frames);

/* Whether the client is so far behind that the application is not asked for more (--hold-buffer). */
bool sr_wscarrier_behind(const sr_websocket *ws);

/*
 * Sends a message that was published. A client that is too far behind, beside what has answered it, is
 * dropped.
 */
bool sr_wscarrier_publish(sr_websocket *ws, sr_wsframe_kind kind, sr_bytes bytes);

/* Sends one message, which is no answer: --hold-buffer is meant for it. */
bool sr_wscarrier_send(sr_websocket *ws, sr_wsframe_kind kind, sr_bytes bytes);

/* Sets its timer for what is due next: --websocket-ping, or what keeps it alive. */
void sr_wscarrier_schedule(sr_websocket *ws);

/* Has the events watched that it waits for. */
bool sr_wscarrier_watch(sr_websocket *ws);

/* Sends CLOSE, and waits for that of the client, unless it has come. */
bool sr_wscarrier_close(sr_websocket *ws, unsigned code, sr_bytes reason);

/* Sends CLOSE, which is the end whatever the client answers. In OPENING or later. */
void sr_wscarrier_fail(sr_websocket *ws, unsigned code, sr_bytes reason);

/*
 * The same, as the application has failed. `why`: for the log, what is wrong with its response; NULL: it is
 * told elsewhere.
 */
void sr_websocket_invalid(sr_websocket *ws, const char *why);

/* Ends the response: all was sent. */
void sr_wscarrier_finish(sr_websocket *ws);

/* Ends it without CLOSE, so that the client notices. */
void sr_wscarrier_drop(sr_websocket *ws);

/* The client has left. */
void sr_wscarrier_gone(sr_websocket *ws);

/* The carrier is none any more: it has ended, or its response goes on as any other. */
void sr_wscarrier_over(sr_websocket *ws);
/* The latter. Returns the exchange. */
sr_exchange *sr_wscarrier_release(sr_websocket *ws);

/* Frees the errand; the request is abandoned if it is not over. */
void sr_websocket_errand_over(sr_websocket *ws);

/* Has the next request tell the application that it is over, if it has accepted it and was not told. */
void sr_wscarrier_tell_end(sr_websocket *ws);

/* Forgets what the application was to be told. */
void sr_websocket_forget_events(sr_websocket *ws);

/* Frees what has come of the response to the errand. */
void sr_websocket_reply_over(sr_websocket *ws);

/* There is no room in the queue: it is looked at in a moment. */
void sr_websocket_ask_later(sr_websocket *ws);

/* sr_websockets_step is to look at it. */
static inline void sr_websocket_ask(sr_websocket *ws)
{
    sr_link_append(&ws->all->asking, &ws->asking);
}

/* --body-timeout in seconds. */
static inline uint32_t sr_websocket_patience(const sr_websocket *ws)
{
    int64_t seconds = ws->all->engine->config.body_ns / SR_SECOND;
    return seconds < 1 ? 1 : (uint32_t)seconds;
}

/*
 * Counts what it keeps of messages. False: all have far too much, more than sr_websockets_step has taken from
 * others so far.
 */
bool sr_websocket_count(sr_websocket *ws);

#endif
