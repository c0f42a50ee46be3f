#ifndef SR_RESPONSE_H
#define SR_RESPONSE_H
/*
 * response: what the fields of a response mean, in any version of HTTP: which of them an application may set,
 * and how long the body is (RFC 9110 8.6). Fields are kept as lines, "Name: value\r\n" each, in the caller's
 * buffer.
 *
 * Framing belongs to the server: Transfer-Encoding, Connection, Keep-Alive and Proxy-Connection of an
 * application never reach the wire (a "close" in its Connection is honoured). Content-Length is used if it is
 * a single number, made if the length is known, and never sent with 1xx or 204.
 *
 * Order of calls: begin, field (any number), decide. After an error the buffer may hold a part of the fields,
 * and the caller drops them. No I/O, no clock. One thread at a time for each object.
 */
#include "../base/buffer.h"
#include "status.h"

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
    SR_FRAMING_NONE,   /* no body at all: HEAD, 204, 304 */
    SR_FRAMING_LENGTH, /* Content-Length: body_length bytes */
    SR_FRAMING_OPEN,   /* the length is not known: the body ends as the version of HTTP marks its end */
} sr_response_framing;

typedef struct sr_response {
    /* set by begin */
    int status;
    bool is_head;
    bool keep_alive; /* by begin: both sides want it; by decide: the connection may be kept */

    /* set by decide */
    sr_response_framing framing;
    uint64_t body_length; /* for SR_FRAMING_LENGTH: bytes that go on the wire at most; a shorter body means
                             close */

    /* private */
    uint64_t app_length; /* the application's Content-Length or SR_LENGTH_UNKNOWN */

    /* for the caller: the application has set these */
    bool has_date, has_server, has_upgrade, has_hsts;

    /*
     * for the caller: the application has set Transfer-Encoding: chunked, so its bytes may be framed already
     */
    bool app_chunked;
} sr_response;

/* The head of a response, in any version of HTTP. */
typedef struct sr_head {
    int status;
    sr_bytes fields;     /* lines "Name: value\r\n", which are checked */
    uint64_t length;     /* of the body; or SR_LENGTH_UNKNOWN */
    uint64_t app_length; /* what the application says of that; or SR_LENGTH_UNKNOWN */
    bool close;          /* no other request may follow */
} sr_head;

/* Inline, as sr_response_decide: each response needs both. The status is 200 to 999. */
static inline sr_response_error sr_response_begin(sr_response *r, int status, bool is_head, bool keep_alive)
{
    *r = (sr_response){
        .status = status, .is_head = is_head, .keep_alive = keep_alive, .app_length = SR_LENGTH_UNKNOWN};
    return status < 200 || status > 999 ? SR_RESPONSE_BAD_STATUS : SR_RESPONSE_OK;
}

/* Appends the line "Name: value\r\n" as it is. False: no memory. */
bool sr_response_line(sr_buffer *out, sr_bytes name, sr_bytes value);

/* Appends one field of the application, checked and filtered as above. */
sr_response_error sr_response_field(sr_response *r, sr_buffer *out, sr_bytes name, sr_bytes value);

/* The same for lines "Name: value\r\n", of which there may be none. Anything else is BAD_NAME. */
sr_response_error sr_response_fields(sr_response *r, sr_buffer *out, sr_bytes lines);

/*
 * All fields were added; `known` is the length of the body, or SR_LENGTH_UNKNOWN. Returns the Content-Length
 * to send, or SR_LENGTH_UNKNOWN. If the application's differs from `known`, the application's is sent: the
 * caller cuts a longer body at body_length, and a shorter one makes keep_alive false.
 */
static inline uint64_t sr_response_decide(sr_response *r, uint64_t known)
{
    if (r->app_chunked)
        r->app_length = SR_LENGTH_UNKNOWN; /* the transfer coding overrides the length (RFC 9112 6.3) */
    if (r->status == 205) {                /* 205 has no content, but its length is sent (RFC 9110 15.3.6) */
        r->framing = r->is_head ? SR_FRAMING_NONE : SR_FRAMING_LENGTH;
        return 0;
    }
    /* never sent with 204 (RFC 9110 8.6); 304 has the length that a 200 would have */
    if (sr_status_bodiless(r->status))
        return r->status == 304 ? r->app_length : SR_LENGTH_UNKNOWN;
    if (r->is_head) {
        /* The application may leave out the body for HEAD, so 0 bytes need not be the length of the GET. */
        uint64_t certain = known ? known : SR_LENGTH_UNKNOWN;
        return r->app_length != SR_LENGTH_UNKNOWN ? r->app_length : certain;
    }
    uint64_t length = r->app_length != SR_LENGTH_UNKNOWN ? r->app_length : known;
    if (length == SR_LENGTH_UNKNOWN) {
        r->framing = SR_FRAMING_OPEN;
        return SR_LENGTH_UNKNOWN;
    }
    if (known < length) /* bytes will be missing, and only a close can tell the client */
        r->keep_alive = false;
    r->framing = SR_FRAMING_LENGTH;
    return r->body_length = length;
}

/* After decide: bytes of the body that are to come; or SR_LENGTH_UNKNOWN. */
static inline uint64_t sr_response_left(const sr_response *r)
{
    return r->framing == SR_FRAMING_LENGTH ? r->body_length
           : r->framing == SR_FRAMING_OPEN ? SR_LENGTH_UNKNOWN
                                           : 0;
}

/* Appends one field of an interim response (RFC 9110 15.2), which has none about the connection or a body. */
sr_response_error sr_informational_field(sr_buffer *out, sr_bytes name, sr_bytes value);
sr_response_error sr_informational_fields(sr_buffer *out, sr_bytes lines);

/* 102 to 199: 101 would change the protocol, and the server sends 100 itself. */
static inline bool sr_informational_status(int status)
{
    return status >= 102 && status <= 199;
}

/*
 * Cuts the first line, "Name: value\r\n", off; the value as it is. False: none is left, or what comes is no
 * such line, and `lines` begins there. What is in name and value is not checked.
 */
bool sr_response_next(sr_bytes *lines, sr_bytes *name, sr_bytes *value);

/*
 * The value of the first field of that name in lines "Name: value\r\n", such as a head. A first line without
 * a colon is skipped.
 * NULL at: there is no such field.
 */
sr_bytes sr_response_value(sr_bytes lines, sr_bytes name);

/* Text of an error for the log: "header name is not a token". Static */
const char *sr_response_error_text(sr_response_error e);

#endif
