/*
 * forwarded: puts into the environment what trusted proxies say of the request. The address and port of the
 * client are there already: they are taken from the client of the connection.
 *
 * Scheme and server port are constants to envpool, so other values are replaced by new scalars after the
 * request. REMOTE_PORT is 0 if nobody gives the client's port, as on unix sockets: the proxy's port does not
 * belong to REMOTE_ADDR.
 */
#include "sirius.h"

#include "env.h"

static void put(pTHX_ HV *env, const char *key, I32 len, const char *at, STRLEN n)
{
    SV **sv = hv_fetch(env, key, len, 1);
    if (sv)
        sv_setpvn(*sv, at, n);
}

void sirius_env_forwarded(pTHX_ HV *env, const sr_worker_request *r)
{
    sr_forwarded f = sr_slot_forwarded(r->slot, r->base);
    char port[8];
    sr_bytes host = f.host.at ? f.host : sr_span_in(r->base, r->request->host);
    const char *scheme = sr_scheme_name(f.scheme);
    if (scheme)
        put(aTHX_ env, "psgi.url_scheme", 15, scheme, strlen(scheme));
    if (f.host.at)
        put(aTHX_ env, "HTTP_HOST", 9, host.at, host.len);
    int n = snprintf(port, sizeof port, "%u", (unsigned)sr_forwarded_server_port(&f, host));
    put(aTHX_ env, "SERVER_PORT", 11, port, (STRLEN)n);
}
