#ifndef SR_WSFRAME_H
#define SR_WSFRAME_H
/*
 * wsframe: frames of WebSocket (RFC 6455 5): reads those of a client, which come in pieces, as messages, and
 * writes heads of those of the server.
 *
 * Owner: the WebSocket. Between two messages the reader has no memory. What a head announces is not allocated
 * before it comes.
 * Thread: one at a time.
 * Failure: a frame that breaks a rule is the end: SR_WSFRAME_BAD, with the code to close with.
 */
#include "../base/buffer.h"
#include "utf8.h"

typedef enum sr_wsframe_kind { /* the opcodes */
                               SR_WSFRAME_MORE_OF_IT = 0,
                               SR_WSFRAME_TEXT = 1,
                               SR_WSFRAME_BINARY = 2,
                               SR_WSFRAME_CLOSE = 8,
                               SR_WSFRAME_PING = 9,
                               SR_WSFRAME_PONG = 10,
} sr_wsframe_kind;

enum { /* codes of CLOSE (RFC 6455 7.4.1) */
       SR_CLOSE_NORMAL = 1000,
       SR_CLOSE_AWAY = 1001,
       SR_CLOSE_PROTOCOL = 1002,
       SR_CLOSE_NONE = 1005, /* never sent: CLOSE had no code */
       SR_CLOSE_UTF8 = 1007,
       SR_CLOSE_POLICY = 1008,
       SR_CLOSE_TOO_LARGE = 1009,
       SR_CLOSE_ERROR = 1011,
       SR_CLOSE_RESTART = 1012,
       SR_CLOSE_LATER = 1013,
};

enum {
    SR_WSFRAME_HEAD_MAX = 10,    /* bytes of a head that the server writes */
    SR_WSFRAME_CONTROL_MAX = 125 /* bytes of a payload of CLOSE, PING or PONG */
};

typedef enum sr_wsframe_result {
    /* it was none but a fragment, or a part of a frame: more must come, if no bytes are left */
    SR_WSFRAME_WAIT,
    SR_WSFRAME_MESSAGE, /* a whole one: its kind and bytes are set */
    SR_WSFRAME_BAD,     /* `code` is set; it stays so */
} sr_wsframe_result;

typedef struct sr_wsframe {
    /* valid after SR_WSFRAME_MESSAGE, until the next call */
    sr_bytes bytes; /* of CLOSE: without the code */
    uint8_t kind;   /* sr_wsframe_kind */
    uint16_t code;  /* of CLOSE, SR_CLOSE_NONE if it had none; or after SR_WSFRAME_BAD */

    /* private */
    uint8_t phase, n_head;
    uint8_t head[14];
    uint8_t of; /* kind of the message that is being read; SR_WSFRAME_MORE_OF_IT: none is */
    bool taken; /* the bytes of the last message in `kept` are no longer needed */
    sr_utf8 text;
    uint64_t left;  /* bytes of the payload that are to come */
    uint32_t mask;  /* in the order of the bytes in memory, for the next one */
    size_t message; /* bytes of the message in `kept`; behind them may be those of a control frame */
    sr_buffer kept;
} sr_wsframe;

void sr_wsframe_init(sr_wsframe *f);
void sr_wsframe_free(sr_wsframe *f);

/*
 * Takes bytes of one frame, of which it changes some, and sets *used. `max`: bytes of a message;
 * SR_CLOSE_TOO_LARGE as soon as a head announces more. Without memory SR_WSFRAME_BAD with SR_CLOSE_ERROR.
 */
sr_wsframe_result sr_wsframe_feed(sr_wsframe *f, char *at, size_t len, size_t max, size_t *used);

/* Forgets a message that was taken, which the next sr_wsframe_feed does as well. */
void sr_wsframe_forget(sr_wsframe *f);

/* Bytes that it keeps of a message that is not complete. */
static inline size_t sr_wsframe_memory(const sr_wsframe *f)
{
    return f->kept.cap;
}

/* Whether it is between two messages, and no byte of the next one has come. */
bool sr_wsframe_idle(const sr_wsframe *f);

/* The head of a whole message from the server. Returns its length. */
size_t sr_wsframe_head(char to[SR_WSFRAME_HEAD_MAX], sr_wsframe_kind kind, uint64_t len);

/* Appends a whole message of the server. False: no memory; then a part of it may be there. */
bool sr_wsframe_add(sr_buffer *out, sr_wsframe_kind kind, sr_bytes bytes);

/* Whether a code may be in a CLOSE frame. */
bool sr_wsframe_code(unsigned code);

/*
 * A whole CLOSE frame, of which the reason is cut to what fits. Returns its length. SR_CLOSE_NONE: without a
 * code.
 */
size_t sr_wsframe_close(char to[2 + SR_WSFRAME_CONTROL_MAX], unsigned code, sr_bytes reason);

/*
 * XORs bytes with a mask, whose first byte in memory is for the first of them. Returns the mask for what
 * follows.
 */
uint32_t sr_wsframe_unmask(char *at, size_t len, uint32_t mask);

#endif
