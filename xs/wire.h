#ifndef SIRIUS_WIRE_H
#define SIRIUS_WIRE_H
/*
 * wire: sends the response of s->turn to the edge, as records (src/worker). Inside.
 *
 * Failure: when the client or the edge is gone, s->turn.gone is set, and what follows is dropped.
 */
#include "sirius.h"

/*
 * Begins a head. The caller appends its fields to s->head, which is empty. The edge knows which version of
 * HTTP the client has.
 */
static inline sr_response_error wire_head_begin(sirius *s, int status)
{
    return sr_response_begin(&s->turn.response, status, 1, s->request.request->is_head, true);
}

/* Ends it; the edge adds the fields of the server. Returns NULL, or what is wrong, a static text. */
const char *wire_head_end(sirius *s, uint64_t known);

/* Sends the head and all of the body, whose length wire_head_end has got as `known`. */
void wire_whole(sirius *s, const struct iovec *body, int n, uint64_t known);
void wire_head(sirius *s, bool now); /* sends the head alone; `now`: wake the edge */

/*
 * Sends the head, and a file as the body: its bytes as they are now, whatever the application does with the file afterwards. fd stays
 * the caller's, and may be closed. `known` as above; `length`, which may be less, is sent.
 */
void wire_file(sirius *s, int fd, off_t offset, uint64_t length, uint64_t known);

/*
 * Sends bytes of a stream, as the application gave them, not more than were announced. `wait`: until the
 * client is not far behind.
 */
void wire_data(sirius *s, sr_bytes bytes, bool wait);

/*
 * The application has nothing to send for now, and may never have: lets the head go out, and looks whether the client is still there.
 */
void wire_nothing(sirius *s);
void wire_end(sirius *s); /* after the last byte of a stream */

void wire_interim(sirius *s, sr_bytes text); /* sends a whole interim head */
/*
 * Inside: the response is over: ends the reply as the phase of the turn says, END, CUT or TAKEN. The edge can go on with the connection,
 * even if the application goes on with something else. `now`: wakes the edge, as the application may go on for a long time. Does
 * nothing the second time.
 */
void sirius_finish(pTHX_ sirius *s, bool now);

#endif
