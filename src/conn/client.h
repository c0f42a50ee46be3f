#ifndef SR_CLIENT_H
#define SR_CLIENT_H
/*
 * client: who a request comes from when proxies stand in front. The peer of a connection is whom accept has named, or
 * whom the header of the PROXY protocol names; the client of a request is that peer, or whom trusted proxies name in
 * its fields.
 */
#include "engine.h"

typedef enum sr_preface {
    SR_PREFACE_MORE, /* what is here is kept; or it was read, and nothing is behind it */
    SR_PREFACE_DONE, /* view is what is behind it */
    SR_PREFACE_BAD,  /* the connection is to be closed without an answer */
} sr_preface;

bool sr_client_welcome(const sr_engine *e, const sr_peer *peer); /* it may connect */

/* For a connection with c->preface; `in_scratch`: view is not in c->in. Sets the peer. */
sr_preface sr_client_preface(sr_conn *c, sr_bytes *view, bool in_scratch);

/* By which a head of this connection is parsed. Its peer is known. */
static inline sr_request_limits sr_client_limits(const sr_engine *e, const sr_conn *c)
{
    sr_request_limits limits = e->config.request;
    if (e->config.trusted_underscores && !sr_cidrs_have(&e->config.trusted, &c->peer))
        limits.underscores = false;
    return limits;
}

/* c->client is the peer, and here becomes whom trusted proxies name. What else they say; NULL: nothing. */
const sr_forwarded *sr_client_forwarded(sr_engine *e, sr_conn *c, const sr_request *r, const char *base);

#endif
