#ifndef SR_FORWARDED_H
#define SR_FORWARDED_H
/*
 * forwarded: what proxies in front say of the client: X-Forwarded-For, -Proto, -Host and -Port, or Forwarded
 * (RFC 7239).
 *
 * Pure: no allocation, no I/O; spans of the result lie in the request's bytes. Any thread.
 *
 * Each proxy appends the address that it was contacted from. So the list is read from the right, as long as
 * the one that has appended an element is trusted: the peer has appended the last, the address in it the one
 * before, and so on. The first address that is not trusted is the client; anybody may have written what
 * stands left of it. An element without an address ("unknown", an obfuscated name, junk) ends the search at
 * the last address that is certain.
 *
 * Only the kind of field is read that the operator has chosen, because a proxy that writes one kind passes
 * the other on as it came. For the same reason the caller decides whether to believe X-Forwarded-Host and
 * X-Forwarded-Port.
 */
#include "request.h"

typedef enum sr_hop {
    SR_HOP_NONE,   /* no address */
    SR_HOP_CLIENT, /* an address that is not trusted: the search ends here */
    SR_HOP_PROXY,  /* the address of a trusted proxy: look further left */
} sr_hop;

/*
 * Judges an IPv4 address, or an IPv6 address without brackets. The bytes may be anything; only those for IPv6
 * have a ':'.
 */
typedef sr_hop sr_hop_judge(void *with, sr_bytes address);

typedef enum sr_forwarded_kind { SR_FORWARDED_X, SR_FORWARDED_RFC7239 } sr_forwarded_kind;

typedef enum sr_scheme { SR_SCHEME_UNSAID, SR_SCHEME_HTTP, SR_SCHEME_HTTPS } sr_scheme;

typedef struct sr_forwarded {
    sr_bytes client;      /* the last address that is certain; at NULL: none but the peer */
    uint16_t port;        /* of the client; 0: not given */
    uint16_t server_port; /* X-Forwarded-Port, which the client has connected to; 0: not given */
    sr_scheme scheme;
    sr_bytes host; /* host[:port] that the client has asked for, if valid; at NULL: not given */
} sr_forwarded;

/* "http" or "https"; NULL: not given. Static */
const char *sr_scheme_name(sr_scheme scheme);

/* Reads the fields of a complete request that came from a trusted peer; `base` is where its bytes are. */
void sr_forwarded_read(sr_forwarded *out, const sr_request *r, const char *base, sr_forwarded_kind kind,
                       sr_hop_judge *judge, void *with);

/*
 * The port that the client has connected to: as given, else the one in `host`, else the default of the
 * scheme.
 */
uint16_t sr_forwarded_server_port(const sr_forwarded *f, sr_bytes host);

#endif
