#ifndef SIRIUS_REQUESTID_H
#define SIRIUS_REQUESTID_H
/*
 * requestid: the id by which logs know the request at hand: X-Request-Id of a trusted peer, else one that the
 * server makes. It is known until sr_worker_done, also when the response is complete.
 */
#include "perlapi.h"

#include "http/traced.h"

sr_bytes sirius_requestid(const sirius *s, char made[SR_REQUEST_ID_MADE]);

/* The value of psgix.request_id (lazy.h). Undefined when its request is over. */
SV *sirius_requestid_value(pTHX_ UV serial);

#endif
