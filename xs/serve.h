#ifndef SIRIUS_SERVE_H
#define SIRIUS_SERVE_H
/* serve: one request: makes %env, calls the application, sends the response, frees what is left. */
#include "perlapi.h"

void sirius_serve_boot(pTHX);

typedef struct sirius_app {
    SV *code;
    bool plain; /* a sub of Perl, which frees its temporaries when it returns */
} sirius_app;

/* What `code` is. The result holds no reference to it. */
sirius_app sirius_app_of(pTHX_ SV *code);

/*
 * Serves s->worker.request, which is complete. True: the application wants this process to end
 * (psgix.harakiri.commit).
 */
bool sirius_serve_one(pTHX_ sirius *s, const sirius_app *app);

#endif
