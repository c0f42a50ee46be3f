#ifndef SR_PROXYLINE_H
#define SR_PROXYLINE_H
/*
 * proxyline: the header of the PROXY protocol, version 1 (a line of text) and 2 (a binary block), which a
 * proxy sends before all else on a connection to name the client that it speaks for.
 * https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
 *
 * Pure; any thread. Every split of the same bytes gives the same result. What is decided before the header is
 * complete (a wrong first byte, a version other than 2, a length beyond the limit) is decided at a fixed
 * offset.
 *
 * Where the specification leaves a choice: UDP names the client as TCP does; a client on a unix socket or an
 * unspecified one has no address, so the connection keeps its own peer; additional fields of version 2 (TLV),
 * the checksum included, are skipped unread.
 */
#include "peer.h"

enum {
    SR_PROXYLINE_V1_MAX = 107,  /* bytes with CRLF; the specification's own limit */
    SR_PROXYLINE_V2_MAX = 4096, /* bytes in all: addresses need 232, the rest is for additional fields */
};

typedef enum sr_proxyline_result {
    SR_PROXYLINE_MORE, /* not complete yet */
    SR_PROXYLINE_DONE, /* complete: out is set */
    SR_PROXYLINE_BAD,  /* not a header, whatever follows: close the connection */
} sr_proxyline_result;

typedef struct sr_proxyline {
    size_t len;   /* bytes of the header */
    bool named;   /* false: the proxy names no client (LOCAL, UNKNOWN, unspecified, unix) */
    sr_peer peer; /* the client, if named */
} sr_proxyline;

/* `view` has all bytes of the connection so far, from the first; it may hold more than the header. */
sr_proxyline_result sr_proxyline_feed(sr_proxyline *out, sr_bytes view);

#endif
