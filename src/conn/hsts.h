#ifndef SR_HSTS_H
#define SR_HSTS_H
/*
 * hsts: Strict-Transport-Security (--hsts), which is in each final response over TLS, and in none without (RFC 6797 7.2).
 * For all that make heads.
 */
#include "../http/response.h"
#include "engine.h"

/* The value of the field for this connection; len 0: none. */
static inline sr_bytes sr_hsts_of(const sr_engine *e, const sr_conn *c)
{
    return c->transport ? e->config.hsts : sr_bytes_of(NULL, 0);
}

/* Adds the field unless the application has set its own. Call it when all other fields are added, before the end of the head. */
static inline sr_response_error sr_hsts_add(const sr_engine *e, const sr_conn *c, sr_response *r,
                                            sr_buffer *head)
{
    if (!c->transport || !e->config.hsts.len || r->has_hsts)
        return SR_RESPONSE_OK;
    return sr_response_field(r, head, SR_BYTES("Strict-Transport-Security"), e->config.hsts);
}

#endif
