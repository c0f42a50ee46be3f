#ifndef SR_CLIENT_H
#define SR_CLIENT_H
/*
 * client: finds out who a request comes from when there are proxies in front of the server.
 *
 * The peer of a connection is the address that accept returned, or the one in the header of the PROXY
 * protocol. The client of a request is that peer, or the address that trusted proxies give in the fields of
 * the request.
 *
 * Called by: accept and the protocol. Failure: none.
 */
#include "engine.h"

/* Whether this peer may connect: with --proxy-protocol and --trust-proxy trusted proxies only. */
bool sr_client_welcome(const sr_engine *e, const sr_peer *peer);

/*
 * The limits for heads on this connection, whose peer is known: --underscores may hold for trusted proxies
 * only.
 */
static inline sr_request_limits sr_client_limits(const sr_engine *e, const sr_conn *c)
{
    sr_request_limits limits = e->config.request;
    if (e->config.trusted_underscores && !sr_cidrs_have(&e->config.trusted, &c->peer))
        limits.underscores = false;
    return limits;
}

/*
 * Sets x->client, which is the peer so far, to the address that trusted proxies give, x->trusted, and
 * x->before_ns. Returns what else they say of scheme, host and port, valid until the next call; NULL:
 * nothing.
 */
const sr_forwarded *sr_client_forwarded(sr_engine *e, sr_exchange *x, const sr_request *r, const char *base);

/* Whether interim responses of the application are sent: --informational. */
bool sr_client_informs(const sr_engine *e, const sr_exchange *x);

#endif
