#ifndef SIRIUS_SITE_H
#define SIRIUS_SITE_H
/*
 * site: what all requests of a listener have in common.
 *
 * Owner: the request loop, which has one for each listener, by its index. Thread: that of perl.
 */
#include "perlapi.h"

enum { SIRIUS_LISTENERS_MAX = 64 };

typedef struct sirius_site {
    SV *name, *port, *multiprocess, *scheme; /* values of %env. Counted */
    HV *socket;                              /* class of psgix.io for its connections. Counted */
} sirius_site;

sirius_site sirius_site_new(pTHX_ int family, const char *name, const char *port, bool is_tls,
                            bool multiprocess);
void sirius_site_free(pTHX_ sirius_site *site); /* also of one that is zeroed */

#endif
