#ifndef SR_CIDR_H
#define SR_CIDR_H
/*
 * cidr: networks such as 10.0.0.0/8 (RFC 4632 3.1, RFC 4291 2.3), and whether a peer is in one of them. Pure;
 * any thread.
 *
 * Strict: a network with bits set after its prefix is refused, since the operator meant another one. An
 * IPv4-mapped network of 96 bits or more is taken as the IPv4 network, as peers are; so ::/0 is all of IPv6
 * and nothing of IPv4.
 */
#include "peer.h"

enum { SR_CIDRS_MAX = 64 };

typedef struct sr_cidr {
    uint8_t family; /* of sr_peer; 0: all peers of unix sockets */
    uint8_t bits;   /* of addr that count */
    uint8_t addr[16];
} sr_cidr;

typedef struct sr_cidrs {
    unsigned n; /* 0: nobody is in the list */
    sr_cidr of[SR_CIDRS_MAX];
} sr_cidrs;

/* "10.0.0.0/8", "::1", "unix". False: it is not a network. */
bool sr_cidr_parse(sr_cidr *out, sr_bytes text);

/*
 * One or more networks with commas between them, and spaces where you like. False: *wrong is the first that
 * is not a network, or the first beyond SR_CIDRS_MAX; it points into text.
 */
bool sr_cidrs_parse(sr_cidrs *out, sr_bytes text, sr_bytes *wrong);

/* Whether the address of the peer is in one of the networks. Its port and zone do not matter. */
bool sr_cidrs_have(const sr_cidrs *list, const sr_peer *peer);

#endif
