#ifndef SIRIUS_WIRE_H
#define SIRIUS_WIRE_H
/*
 * wire: sends the response of the turn to the edge, as records (src/worker). Inside.
 *
 * Failure: when the client or the edge is gone, `gone` is set, and what follows is dropped.
 */
#include "perlapi.h"

#include "http/response.h"

#include <sys/uio.h>

typedef enum sirius_phase {
    SIRIUS_UNANSWERED, /* nothing of a final response was sent */
    SIRIUS_STREAMING,  /* the head was sent, and a writer may follow */
    SIRIUS_ANSWERED,   /* the response is complete */
    SIRIUS_BROKEN,     /* begun and impossible to complete: it will be cut */
} sirius_phase;

/* The response of a turn, as far as it was decided and sent. */
typedef struct sirius_wire {
    sirius_phase phase;
    uint32_t status;     /* of the final response; 0: there is none yet */
    uint64_t left;       /* SR_FRAMING_LENGTH: bytes of the body still to be sent */
    bool gone;           /* the client is gone, as far as is known */
    uint16_t flags;      /* of the record of its head (share/reply.h) */
    bool interim_broken; /* half of an interim head was sent: the response can only be cut */
    bool said;           /* END, CUT or TAKEN was sent */
    bool longer;         /* the application has given more than its Content-Length: the rest was left out */
    sr_response response;
} sirius_wire;

/* Whether the response is complete by its framing: whatever the application sends then is not part of it. */
static inline bool sirius_complete(const sirius_wire *w)
{
    return w->status && !w->gone &&
           (w->response.framing == SR_FRAMING_NONE || (w->response.framing == SR_FRAMING_LENGTH && !w->left));
}

/*
 * Begins a head. The caller appends its fields to sirius.head, which is empty. The edge knows which version
 * of HTTP the client has.
 */
static inline sr_response_error wire_head_begin(sirius_wire *w, int status, bool is_head)
{
    return sr_response_begin(&w->response, status, is_head, true);
}

/* Ends it; the edge adds the fields of the server. Returns NULL, or what is wrong, a static text. */
const char *wire_head_end(sirius *s, uint64_t known);

/* Sends the head and all of the body, whose length wire_head_end has got as `known`. */
void wire_whole(sirius *s, const struct iovec *body, int n, uint64_t known);
void wire_head(sirius *s, bool now); /* sends the head alone; `now`: wake the edge */

/*
 * Sends the head, and a file as the body: its bytes as they are now, whatever the application does with the
 * file afterwards. fd stays the caller's, and may be closed. `known` as above; `length`, which may be less,
 * is sent.
 */
void wire_file(sirius *s, int fd, off_t offset, uint64_t length, uint64_t known);

/*
 * Sends bytes of a stream, as the application gave them, not more than were announced. `wait`: until the
 * client is not far behind.
 */
void wire_data(sirius *s, sr_bytes bytes, bool wait);

/*
 * The application has nothing to send for now, and may never have: lets the head go out, and looks whether
 * the client is still there.
 */
void wire_nothing(sirius *s);
void wire_end(sirius *s); /* after the last byte of a stream */

void wire_interim(sirius *s, int status, sr_bytes fields); /* sends an interim head */
/*
 * Inside: the response is over: ends the reply as the phase of the turn says, END, CUT or TAKEN. The edge can
 * go on with the connection, even if the application goes on with something else. `now`: wakes the edge, as
 * the application may go on for a long time. Does nothing the second time.
 */
void sirius_finish(pTHX_ sirius *s, bool now);

#endif
