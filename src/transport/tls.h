#ifndef SR_TLS_H
#define SR_TLS_H
/*
 * tls: the transport that encrypts, by OpenSSL. TLS 1.2 and 1.3, by default as Mozilla's "intermediate"
 * recommends; no renegotiation, no compression, no early data. ALPN knows http/1.1, and h2 if that is asked
 * for. With the ciphers of that list a connection can be passed on (sr_transport_pack) once its handshake is
 * complete.
 *
 * sr_tls has what all connections of an edge share: certificates with their keys, options, keys of tickets.
 * Loading another set does not touch connections that exist.
 *
 * Owner: the edge, of sr_tls, which outlives its connections; each connection, of its transport.
 * Memory: the buffers of a connection exist while it reads or writes.
 * Failure: as transport.h says. Without OpenSSL at build (SR_TLS is not defined) sr_tls_new returns NULL.
 */
#include "keyset.h"
#include "transport.h"

#define SR_TLS_MISSING "this build has no TLS: install libssl-dev (OpenSSL 3), then build Sirius again"

typedef struct sr_tls sr_tls;

bool sr_tls_built(void);
/*
 * Without a certificate: accept fails until a set is loaded. `h2`: clients may choose HTTP/2. NULL: no
 * memory.
 */
sr_tls *sr_tls_new(bool h2);
void sr_tls_free(sr_tls *tls);

/*
 * Loads a set (keyset.h): all of it, or nothing. False: `why` says what is wrong, and the set before stays.
 */
bool sr_tls_load(sr_tls *tls, sr_bytes set, char why[SR_KEYSET_WHY]);

/* For a connection that a client has just opened. NULL: no memory, or no set. */
sr_transport *sr_tls_accept(sr_tls *tls, int socket);

/*
 * For a connection that sr_transport_pack of another process has packed. NULL: no memory, or it is not whole.
 */
sr_transport *sr_tls_adopt(sr_bytes packed, int socket);

#endif
