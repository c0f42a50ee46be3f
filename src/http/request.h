#ifndef SR_REQUEST_H
#define SR_REQUEST_H
/*
 * request: the head of a request, in any version of HTTP: spans of the bytes that it came in, and what they
 * mean. The parser of HTTP/1.x (http1/head.h) fills it in.
 *
 * Owner: the caller, with the bytes. Spans are offsets, so the bytes may be moved or copied, to a slot of the
 * queue too.
 */
#include "../base/bytes.h"
#include "../base/span.h"
#include "version.h"

#include <stddef.h>

enum {
    SR_REQUEST_FIELDS_MAX = 256, /* in the struct; the limit in force is sr_request_limits.fields */
    SR_METHOD_MAX = 64,          /* a longer method is 400 */
    SR_FIELD_NAME_MAX = 1024,    /* a longer field name is 431 */
    SR_HEAD_MAX = 1 << 30,       /* offsets are 32 bits wide */
};

typedef struct sr_request_limits {
    uint32_t line;    /* bytes of the request line without CRLF; past it 414 (400 when it is the method). At
                        most head. */
    uint32_t head;    /* bytes of the whole head from the request line on, last CRLF included; past it 431; at
                        most SR_HEAD_MAX */
    uint32_t fields;  /* fields; past it 431; at most SR_REQUEST_FIELDS_MAX */
    bool underscores; /* keep fields with '_' in their names, see sr_framing_underscored; else drop them */
} sr_request_limits;

typedef struct sr_field {
    sr_span name, value; /* value without OWS at its ends */
} sr_field;

typedef enum sr_body_framing { SR_BODY_NONE, SR_BODY_LENGTH, SR_BODY_CHUNKED } sr_body_framing;

typedef enum sr_expect { SR_EXPECT_NONE, SR_EXPECT_CONTINUE } sr_expect;

typedef struct sr_request {
    /* facts; valid after SR_PARSE_DONE (status and why: after SR_PARSE_BAD) */
    sr_span method;
    sr_span target; /* as it came */
    sr_span path;   /* origin-form path, still percent-encoded, never with '?'; "*" for OPTIONS *. An
                             absolute-form with an empty path has len 0 and means "/". */
    sr_span query;  /* after the first '?', len 0 when there is none */
    sr_span host;   /* value of Host; with absolute-form its authority, which also is the value of Host in
                             fields[]; len 0 only for HTTP/1.0 without Host */
    sr_span content_type;    /* len 0: none */
    uint64_t content_length; /* for SR_BODY_LENGTH, and at most 63 bits; 0 is a length as well */
    uint32_t head_start;     /* where the request line starts: after the empty line a client may send first */
    uint32_t head_len;       /* bytes up to and with the empty line, counted from the first byte fed */
    uint32_t n_fields;
    sr_body_framing framing;
    sr_expect expect; /* never set for HTTP/1.0 (RFC 9110 10.1.1) */
    uint8_t version;  /* sr_version */
    bool extended;    /* extended CONNECT (RFC 8441), which is given as a GET with an upgrade */
    bool host_added;  /* host is of an absolute-form without a Host (HTTP/1.0): it is not in fields[] */
    bool has_query;   /* a '?' was there, maybe with nothing after it */
    bool is_head;     /* the method is HEAD: the response has no body */
    bool keep_alive;  /* what the client wants: by Connection, where close wins, else by version */
    bool upgrade;     /* Connection has "upgrade" and there is an Upgrade field; never for HTTP/1.0 (RFC 9110
                         7.8) */
    bool shared;  /* its connection is of others as well, or is none: no application can have the socket */
    bool proxied; /* a field that proxies add says that one has forwarded it. Anybody may have written it */
    int status;   /* 400, 414, 417, 426, 431, 501 or 505 */
    const char *why; /* static text: the rule that was broken */

    /* private to the parser and target.c */
    uint8_t phase;
    uint8_t blank;                          /* empty lines before the request line */
    uint8_t method_id;                      /* sr_method */
    uint8_t form;                           /* sr_target_form */
    uint32_t lines;                         /* field lines so far, the dropped ones too */
    uint32_t line;                          /* where the current line starts */
    uint32_t scanned;                       /* up to here no LF was seen */
    uint32_t seen;                          /* bits: sr_seen */
    sr_field fields[SR_REQUEST_FIELDS_MAX]; /* the first n_fields; Proxy is not among them */
} sr_request;

/* The bytes of a request but the fields that it has not. */
static inline size_t sr_request_bytes(const sr_request *r)
{
    return offsetof(sr_request, fields) + r->n_fields * sizeof r->fields[0];
}

#endif
