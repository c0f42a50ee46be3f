#ifndef SR_FORWARDED_H
#define SR_FORWARDED_H
/*
 * forwarded: what proxies in front say of the client: X-Forwarded-For, -Proto, -Host and -Port, or Forwarded (RFC 7239).
 *
 * Pure: no allocation, no I/O; spans of the result lie in the request's bytes. Any thread.
 *
 * A list grows at its right end: each proxy adds whom it has spoken with. So it is walked from the right for as long as
 * the one who has added an element is trusted: the peer added the last, whom that names the one before, and so on.
 * The first address that is not trusted is the client; what stands left of it anybody may have written. An element
 * without an address ("unknown", an obfuscated name, junk) ends the walk at the last address that is sure.
 *
 * Only one kind of field is read, as the operator says: a proxy that writes the one passes the other on as it came.
 * For the same reason the host of X-Forwarded-Host is for the caller to believe or not.
 */
#include "request.h"

typedef enum sr_hop {
    SR_HOP_NONE,   /* no address */
    SR_HOP_CLIENT, /* not trusted: here the walk ends */
    SR_HOP_PROXY,  /* trusted: whom has it spoken with? */
} sr_hop;

/* Of an IPv4 address, or an IPv6 address without brackets: the bytes may be any, but have a ':' just for IPv6. */
typedef sr_hop sr_hop_judge(void *with, sr_bytes address);

typedef enum sr_forwarded_kind { SR_FORWARDED_X, SR_FORWARDED_RFC7239 } sr_forwarded_kind;

typedef struct sr_forwarded {
    sr_bytes client;      /* the last address that is sure; at NULL: none but the peer itself */
    uint16_t port;        /* of that client; 0: not said */
    uint16_t server_port; /* that the client has connected to, X-Forwarded-Port; 0: not said */
    const char *scheme;   /* "http" or "https"; NULL: not said */
    sr_bytes host;        /* host[:port] that the client has asked for, and valid; at NULL: not said */
} sr_forwarded;

/* The request came from a trusted peer, and sr_request_feed was done with it; `base` is where its bytes are. */
void sr_forwarded_read(sr_forwarded *out, const sr_request *r, const char *base, sr_forwarded_kind kind,
                       sr_hop_judge *judge, void *with);

/* Where the client has connected to: the port as it is said, else as it stands in its host, else the scheme's own. */
uint16_t sr_forwarded_server_port(const sr_forwarded *f, sr_bytes host);

#endif
