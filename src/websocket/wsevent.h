#ifndef SR_WSEVENT_H
#define SR_WSEVENT_H
/*
 * wsevent: events of WebSocket-over-HTTP, the content type application/websocket-events: what an event
 * request tells an application, and what its response answers.
 *
 *     NAME CRLF, or NAME SP 1*HEXDIG CRLF content CRLF, as often as needed
 *
 * Pure; any thread. Failure: lack of memory only, when events are added.
 */
#include "../base/buffer.h"

#define SR_WSEVENT_TYPE "application/websocket-events"

typedef enum sr_wsevent_kind {
    SR_WSEVENT_OPEN,
    SR_WSEVENT_TEXT,
    SR_WSEVENT_BINARY,
    SR_WSEVENT_PING,
    SR_WSEVENT_PONG,
    SR_WSEVENT_CLOSE, /* content: two bytes with the code, then the reason; none: no code */
    SR_WSEVENT_DISCONNECT,
} sr_wsevent_kind;

typedef struct sr_wsevent {
    sr_wsevent_kind kind;
    sr_bytes content; /* in the bytes that were read; empty if there is none */
} sr_wsevent;

typedef enum sr_wsevent_result { SR_WSEVENT_NEXT, SR_WSEVENT_END, SR_WSEVENT_BAD } sr_wsevent_result;

/* Cuts the next one off. BAD: these are no events, or not whole. */
sr_wsevent_result sr_wsevent_next(sr_bytes *in, sr_wsevent *event);

/* Appends one. Messages have content, even if it is empty; others only if there is some. */
bool sr_wsevent_add(sr_buffer *out, sr_wsevent_kind kind, sr_bytes content);

/* Bytes that sr_wsevent_add appends. */
size_t sr_wsevent_bytes(size_t content);

/* Whether it is the media type, whatever parameters it has. */
bool sr_wsevent_type(sr_bytes content_type);

#endif
