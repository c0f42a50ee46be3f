#ifndef SIRIUS_ACCESSLOG_H
#define SIRIUS_ACCESSLOG_H
/* accesslog: what a worker tells of its requests to the edge, which writes the access log. */
#include "perlapi.h"

typedef struct sirius_accesslog sirius_accesslog; /* sirius.log; NULL: there is none */

void sirius_accesslog_open(pTHX_ sirius *s, HV *conf); /* croaks */
void sirius_accesslog_free(pTHX_ sirius *s);
void sirius_accesslog_begin(sirius *s);     /* before the application is called: notes the request */
void sirius_accesslog_say(pTHX_ sirius *s); /* sends the edge the values that differ in %env now */

#endif
