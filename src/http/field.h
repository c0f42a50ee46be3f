#ifndef SR_FIELD_H
#define SR_FIELD_H
/* field: looks for fields of a request by name. Pure; any thread. */
#include "request.h"
#include "token.h"

/*
 * The next field named `lower` (lower case, letters and '-') from number *i on. Sets *value and moves *i
 * behind it; false: there is none. Start with *i = 0.
 */
static inline bool sr_field_next(const sr_request *r, const char *base, sr_bytes lower, uint32_t *i,
                                 sr_bytes *value)
{
    while (*i < r->n_fields) {
        const sr_field *f = &r->fields[(*i)++];
        if (f->name.len == lower.len && sr_token_is(base + f->name.at, lower.at, lower.len)) {
            *value = sr_span_in(base, f->value);
            return true;
        }
    }
    return false;
}

/*
 * The value of a field that may be there once. False: it is missing, or there are several, which say nothing
 * certain.
 */
static inline bool sr_field_only(const sr_request *r, const char *base, sr_bytes lower, sr_bytes *value)
{
    uint32_t i = 0;
    sr_bytes other;
    return sr_field_next(r, base, lower, &i, value) && !sr_field_next(r, base, lower, &i, &other);
}

#endif
