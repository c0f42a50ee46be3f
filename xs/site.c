#include "site.h"

#include "socket.h"

sirius_site sirius_site_new(pTHX_ int family, const char *name, const char *port, bool is_tls,
                            bool multiprocess)
{
    return (sirius_site){.name = newSVpv(name, 0),
                         .port = newSVpv(port, 0),
                         .multiprocess = newSViv(multiprocess),
                         .scheme = newSVpv(is_tls ? "https" : "http", 0),
                         .socket = (HV *)SvREFCNT_inc((SV *)sirius_socket_class(aTHX_ family, is_tls))};
}

void sirius_site_free(pTHX_ sirius_site *site)
{
    PERL_UNUSED_CONTEXT;
    SvREFCNT_dec(site->name);
    SvREFCNT_dec(site->port);
    SvREFCNT_dec(site->multiprocess);
    SvREFCNT_dec(site->scheme);
    SvREFCNT_dec((SV *)site->socket);
}
