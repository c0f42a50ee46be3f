#ifndef SR_PROXYLINE_H
#define SR_PROXYLINE_H
/*
 * proxyline: the header of the PROXY protocol, version 1 (a line of text) and 2 (a binary block), which a proxy sends
 * before all else on a connection to name the client it speaks for.
 * https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt
 *
 * Pure; any thread. Every split of the same bytes gives the same result. What is decided before the header is whole (a
 * wrong first byte, a version that is not 2, a length past the limit) is decided at a fixed offset.
 *
 * Of what the specification leaves open: UDP names the client as TCP does; a client on a unix socket and an unspecified
 * one have no address, so that the connection's own peer stays; additional fields of version 2 (TLV), the checksum among
 * them, are skipped unread.
 */
#include "peer.h"

enum {
    SR_PROXYLINE_V1_MAX = 107,  /* bytes with CRLF; the specification's own limit */
    SR_PROXYLINE_V2_MAX = 4096, /* bytes in all: addresses need 232, the rest is for additional fields */
};

typedef enum sr_proxyline_result {
    SR_PROXYLINE_MORE, /* not whole yet */
    SR_PROXYLINE_DONE, /* whole: out is set */
    SR_PROXYLINE_BAD,  /* none, however it may go on: the connection is to be closed */
} sr_proxyline_result;

typedef struct sr_proxyline {
    size_t len; /* bytes of the header */
    bool
        named; /* false: the proxy speaks for itself or can't say for whom (LOCAL, UNKNOWN, unspecified, unix) */
    sr_peer peer; /* the client, when named */
} sr_proxyline;

/* All bytes of the connection that are there, from its first; `view` may hold more than the header. */
sr_proxyline_result sr_proxyline_feed(sr_proxyline *out, sr_bytes view);

#endif
