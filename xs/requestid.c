#include "requestid.h"

#include "sirius.h"

sr_bytes sirius_requestid(const sirius *s, char made[SR_REQUEST_ID_MADE])
{
    sr_bytes named = sr_bytes_of(s->named.text, s->named.len);
    return s->named.serial == s->turn.serial && sr_traced_is_id(named) ? named
                                                                       : sr_worker_made_id(&s->worker, made);
}

SV *sirius_requestid_value(pTHX_ UV serial)
{
    const sirius *s = sirius_own(aTHX);
    char made[SR_REQUEST_ID_MADE];
    if (!s || s->turn.serial != serial || !s->worker.from)
        return newSV(0);
    sr_bytes id = sirius_requestid(s, made);
    return newSVpvn(id.at, id.len);
}
