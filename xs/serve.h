#ifndef SIRIUS_SERVE_H
#define SIRIUS_SERVE_H
/* serve: one request: makes %env, calls the application, sends the response, frees what is left. */
#include "sirius.h"

void sirius_serve_boot(pTHX);

/* Serves s->request, which is complete. */
void sirius_serve_one(pTHX_ sirius *s, SV *app);

#endif
