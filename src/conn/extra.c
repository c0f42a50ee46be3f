#include "extra.h"

#include "identity.h"

/*
 * Strict-Transport-Security is in each final response over TLS, and in none without (RFC 6797 7.2); the
 * application's own wins.
 */
static sr_response_error add_hsts(const sr_engine *e, const sr_conn *c, sr_response *r, sr_buffer *out)
{
    if (!c->transport || !e->config.hsts.len || r->has_hsts)
        return SR_RESPONSE_OK;
    return sr_response_field(r, out, SR_BYTES("Strict-Transport-Security"), e->config.hsts);
}

/* --request-id-header; a field of that name which the application has set wins. */
static sr_response_error add_id(sr_engine *e, sr_exchange *x, sr_response *r, sr_bytes fields, sr_buffer *out)
{
    char made[SR_REQUEST_ID_MADE];
    if (sr_response_value(fields, e->config.id_field).at)
        return SR_RESPONSE_OK;
    return sr_response_field(r, out, e->config.id_field, sr_identity(e, x, made));
}

sr_response_error sr_extra_options(sr_engine *e, sr_exchange *x, sr_response *r, sr_bytes fields,
                                   sr_buffer *out)
{
    sr_response_error err = add_hsts(e, x->conn, r, out);
    return err || !e->config.id_field.len ? err : add_id(e, x, r, fields, out);
}
