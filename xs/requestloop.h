#ifndef SIRIUS_REQUESTLOOP_H
#define SIRIUS_REQUESTLOOP_H
/* requestloop: the object Sirius::Worker::RequestLoop. */
#include "perlapi.h"

SV *sirius_new(pTHX_ HV *conf); /* a mortal Sirius::Worker::RequestLoop; croaks */
void sirius_free(pTHX_ sirius *s);

#endif
