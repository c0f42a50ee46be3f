#ifndef SR_IDENTITY_H
#define SR_IDENTITY_H
/*
 * identity: the id of an exchange, which its response may have (--request-id-header) and the logs have: that
 * of a trusted proxy, else one made of a number (http/traced.h). Both are kept in the exchange.
 *
 * Failure: without memory to keep what the proxy has said, the response has an id that the server makes.
 */
#include "../http/traced.h"
#include "engine.h"

/*
 * What a trusted peer says. Called for a request whose fields are known; only matters with
 * --request-id-header.
 */
void sr_identity_keep(const sr_engine *e, sr_exchange *x, const sr_request *r, const char *base);

/* The number of the request; if it never got one in the queue, it gets one now. */
static inline uint64_t sr_identity_number(sr_engine *e, sr_exchange *x)
{
    if (!x->number)
        x->number = sr_engine_id(e);
    return x->number;
}

sr_bytes sr_identity(sr_engine *e, sr_exchange *x, char made[SR_REQUEST_ID_MADE]);

#endif
