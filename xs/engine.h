#ifndef SIRIUS_ENGINE_H
#define SIRIUS_ENGINE_H
/* engine: the object Sirius::Worker::Engine. */
#include "perlapi.h"

SV *sirius_new(pTHX_ HV *conf); /* a mortal Sirius::Worker::Engine; croaks */
void sirius_free(pTHX_ sirius *s);

#endif
