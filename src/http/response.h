#ifndef SR_RESPONSE_H
#define SR_RESPONSE_H
/*
 * response: the head of a response and the framing of its body (RFC 9112 6, 7; RFC 9110 8.6).
 *
 * Framing belongs to the server: Transfer-Encoding, Connection, Keep-Alive and Proxy-Connection of an
 * application never reach the wire (a "close" in its Connection is honoured). Content-Length is used if it is
 * a single number, made if the length is known, and never sent with chunked, 1xx or 204.
 *
 * Order of calls: init, field (any number), finish, then the body. Bytes are appended to the caller's buffer.
 * After an error it holds a part of a head, and the caller resets it. No I/O, no clock. One thread at a time
 * for each object.
 */
#include "../base/buffer.h"

typedef enum sr_response_error {
    SR_RESPONSE_OK,
    SR_RESPONSE_BAD_STATUS, /* not 200 to 999 */
    SR_RESPONSE_BAD_NAME,   /* not a token */
    SR_RESPONSE_BAD_VALUE,  /* CR, LF, NUL or another control byte but HTAB */
    SR_RESPONSE_BAD_LENGTH, /* Content-Length is not a number, or there are two that differ */
    SR_RESPONSE_NO_MEMORY,
} sr_response_error;

#define SR_LENGTH_UNKNOWN UINT64_MAX

typedef enum sr_response_framing {
    SR_FRAMING_NONE,    /* no body at all: HEAD, 204, 304 */
    SR_FRAMING_LENGTH,  /* Content-Length: body_length bytes */
    SR_FRAMING_CHUNKED, /* HTTP/1.1, length unknown */
    SR_FRAMING_CLOSE,   /* HTTP/1.0, length unknown: the close ends it */
} sr_response_framing;

typedef struct sr_response {
    /* set by init */
    int status;
    uint8_t minor; /* of the request: 0 or 1 */
    bool is_head;
    bool keep_alive; /* by init: both sides want it; by finish: the connection may be kept */

    /* decided by finish */
    sr_response_framing framing;
    uint64_t body_length; /* for SR_FRAMING_LENGTH: bytes that go on the wire at most; a shorter body means
                             close */

    /* private */
    uint64_t app_length; /* the application's Content-Length or SR_LENGTH_UNKNOWN */
    bool has_date, has_server, has_upgrade;

    /* for the caller: the application has set Strict-Transport-Security */
    bool has_hsts;

    /*
     * for the caller: the application has set Transfer-Encoding: chunked, so its bytes may be framed already
     */
    bool app_chunked;
} sr_response;

/* Starts the head with the status line, which always says HTTP/1.1 (RFC 9112 2.3). 200 <= status <= 999 */
sr_response_error sr_response_init(sr_response *r, sr_buffer *out, int status, uint8_t minor, bool is_head,
                                   bool keep_alive);

/* Appends one field of the application, checked and filtered as above. */
sr_response_error sr_response_field(sr_response *r, sr_buffer *out, sr_bytes name, sr_bytes value);

/*
 * Ends the head. `known` is the length of the body, or SR_LENGTH_UNKNOWN. If the application's Content-Length
 * differs from it, the application's is sent: the caller cuts a longer body at body_length, and a shorter one
 * makes keep_alive false. `date` has SR_DATE_LEN bytes and is sent unless the application has set Date;
 * `server` is sent unless its len is 0. Connection is "close" if keep_alive is false, and "keep-alive" for an
 * HTTP/1.0 client that is kept.
 */
sr_response_error sr_response_finish(sr_response *r, sr_buffer *out, uint64_t known, const char *date,
                                     sr_bytes server);

/*
 * For a process that passes the fields to another one, which makes the head: init and finish without their
 * bytes. Call begin, then sr_response_field, then decide, which sets what finish would set, and returns the
 * Content-Length to send or SR_LENGTH_UNKNOWN.
 */
sr_response_error sr_response_begin(sr_response *r, int status, uint8_t minor, bool is_head, bool keep_alive);
uint64_t sr_response_decide(sr_response *r, uint64_t known);

/* An interim response (RFC 9110 15.2): call init, then field, then end. */
sr_response_error sr_informational_init(sr_buffer *out, int status); /* 102 to 199; 101 is BAD_STATUS */
sr_response_error sr_informational_field(sr_buffer *out, sr_bytes name, sr_bytes value);
sr_response_error sr_informational_end(sr_buffer *out);

/*
 * Writes "1a2b\r\n", at most 18 bytes; the caller appends data and CRLF. length > 0. Returns the bytes
 * written.
 */
size_t sr_chunk_head(char out[18], uint64_t length);

/*
 * A whole response that refuses a request: status line, Date, Server, Connection: close, and a short
 * text/plain body that names the status, unless it is for HEAD. 426 has Upgrade and Sec-WebSocket-Version: 13
 * (RFC 6455 4.4), 503 has Retry-After. `hsts` is the value of Strict-Transport-Security; len 0: it is not sent.
 */
bool sr_response_refusal(sr_buffer *out, int status, bool is_head, const char *date, sr_bytes server,
                         sr_bytes hsts);

/* Text of an error for the log: "header name is not a token". Static */
const char *sr_response_error_text(sr_response_error e);

#endif
