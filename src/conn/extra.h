#ifndef SR_EXTRA_H
#define SR_EXTRA_H
/*
 * extra: the fields of a final response but those that every version of HTTP frames with: of the application,
 * and what options of the server add to them, --hsts and --request-id-header.
 */
#include "../http/response.h"
#include "engine.h"
#include "protocol.h"

/* For the following: those of options. */
sr_response_error sr_extra_options(sr_engine *e, sr_exchange *x, sr_response *r, sr_bytes fields,
                                   sr_buffer *out);

/*
 * Appends them as lines, for a response that was begun (sr_response_begin). The application's win. Inline:
 * each response has it, and most have nothing else.
 */
static inline sr_response_error sr_extra_fields(sr_engine *e, sr_exchange *x, sr_response *r,
                                                const sr_head *h, sr_buffer *out)
{
    sr_response_error err = sr_response_fields(r, out, h->fields);
    if (!err && h->app_length != SR_LENGTH_UNKNOWN && h->app_length > INT64_MAX)
        err = SR_RESPONSE_BAD_LENGTH;
    r->app_length = h->app_length;
    bool has_options = x->conn->transport || e->config.id_field.len;
    return err || !has_options ? err : sr_extra_options(e, x, r, h->fields, out);
}

#endif
