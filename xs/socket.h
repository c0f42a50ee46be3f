#ifndef SIRIUS_SOCKET_H
#define SIRIUS_SOCKET_H
/* socket: psgix.io. Nothing but drop runs code of Perl. */
#include "perlapi.h"

/* psgix.io of a turn. */
typedef struct sirius_io {
    SV *glob;   /* once somebody has read it. Counted */
    bool taken; /* the application has the socket */
} sirius_io;

HV *sirius_socket_class(pTHX_ int family, bool is_tls); /* class for connections of a listener. Not counted */

/* A new reference to the handle of this request; undef when that is over. */
SV *sirius_socket(pTHX_ UV serial);
void sirius_socket_forks(pTHX_ sirius *s); /* the application is about to fork */
void sirius_socket_drop(pTHX_ sirius *s);  /* at the end of the turn; outside */

#endif
