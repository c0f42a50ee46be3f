#ifndef SR_FLOOD_H
#define SR_FLOOD_H
/*
 * flood: how much a client may ask for that brings it nothing. Each such frame costs credit, which time and
 * useful work bring back; a client that has none left is told ENHANCE_YOUR_CALM, and its connection ends.
 * Besides, requests that it has cancelled count as open while workers run them, and a header block ends the
 * connection when it is far larger than a request may be.
 *
 * nghttp2 has limits of its own, which differ by version. These are reached first, so that they have one
 * answer and are counted.
 */
#include "framehead.h"
#include "state.h"

enum {
    SR_FLOOD_STREAMS_MAX = 128, /* open at a time, of one connection */
    SR_FLOOD_CREDIT = 1000,     /* at the beginning, and at most */
    SR_FLOOD_HEADS_MAX = 1024 * 1024,
    SR_FLOOD_PIECES_MIN = 8, /* CONTINUATION frames of one head, however small heads have to be */
};

void sr_flood_begin(sr_session *s);

/* How many CONTINUATION frames a header block may have. */
uint32_t sr_flood_pieces(const sr_session *s);

/* A frame has come, or its head. False: it is one too many, and the connection ends. */
bool sr_flood_frame(sr_session *s, const sr_framehead *f);

/* A field of a header block was decoded. False: as above. */
bool sr_flood_field(sr_session *s, size_t name, size_t value);

/* The server resets a stream with this error. Ends the connection if that was one too many. */
void sr_flood_reset(sr_session *s, uint32_t error);

/* nghttp2 has given up the session, as that much is not read of what answers PING and SETTINGS. */
void sr_flood_unread(sr_session *s);

/* Whether one more stream may be opened. False: it is to be refused, which is counted. */
bool sr_flood_room(sr_session *s);

/*
 * Whether a head of so many bytes may be kept while the body is collected. False: likewise. By references,
 * little makes a large head.
 */
bool sr_flood_keeps(sr_session *s, size_t head);

/* A DATA frame, or the end of a response, was sent, which takes frames of the client. */
static inline void sr_flood_earn(sr_session *s, uint32_t credit)
{
    credit += s->credit;
    s->credit = credit < SR_FLOOD_CREDIT ? credit : SR_FLOOD_CREDIT;
}

#endif
