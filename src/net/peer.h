#ifndef SR_PEER_H
#define SR_PEER_H
/* peer: the address at the other end of a connection, in 24 bytes without pointers. Pure; any thread. */
#include "../base/bytes.h"

#include <sys/socket.h>

enum { SR_PEER_TEXT_MAX = 64 }; /* an IPv6 address with its zone */

typedef struct sr_peer {
    uint8_t family; /* 0: unix socket; 4; 6 */
    uint8_t unused;
    uint16_t port;    /* host byte order; 0 for unix */
    uint8_t addr[16]; /* network byte order, 4 or 16 bytes of it */
    uint32_t scope;   /* IPv6 zone, 0 for none */
} sr_peer;

/* From the result of accept4. An IPv4-mapped IPv6 address becomes the IPv4 address, here and below. */
void sr_peer_init(sr_peer *p, const struct sockaddr_storage *from);

/* From an address in network byte order: 4 bytes of it for family 4, 16 for 6. No zone. */
void sr_peer_set(sr_peer *p, uint8_t family, const void *addr, uint16_t port);

/*
 * From text: an IPv4 address as four decimal numbers without leading zeros, or an IPv6 address (RFC 4291
 * 2.2), nothing around it, no zone. The port becomes 0. False: it is not an address, and *p is as it was.
 */
bool sr_peer_parse(sr_peer *p, sr_bytes text);

/*
 * The address as text: "127.0.0.1", "::1"; for a unix socket "127.0.0.1", since applications and
 * Plack::Middleware::Lint expect an address. `out` gets no NUL. Returns the bytes written.
 */
size_t sr_peer_text(const sr_peer *p, char out[SR_PEER_TEXT_MAX]);

#endif
