#include "identity.h"

#include <stdlib.h>
#include <string.h>

void sr_identity_keep(const sr_engine *e, sr_exchange *x, const sr_request *r, const char *base)
{
    sr_bytes id = e->config.id_field.len && !x->named ? sr_traced_id(r, base) : (sr_bytes){0};
    if (!id.len || !(x->named = malloc(id.len + 1)))
        return;
    memcpy(x->named, id.at, id.len);
    x->named[id.len] = '\0';
}

sr_bytes sr_identity(sr_engine *e, sr_exchange *x, char made[SR_REQUEST_ID_MADE])
{
    if (x->named)
        return sr_bytes_of(x->named, strlen(x->named));
    return sr_traced_make(made, e->nonce, sr_identity_number(e, x));
}
