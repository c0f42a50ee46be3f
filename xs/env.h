#ifndef SIRIUS_ENV_H
#define SIRIUS_ENV_H
/* env: %env of PSGI, of a request and of what trusted proxies say about it (forwarded.c). */
#include "perlapi.h"

#include "worker/worker.h"

/* X-Request-Id of the last request of a trusted peer that has one. */
typedef struct sirius_named {
    UV serial;  /* of its turn; 0: none */
    size_t len; /* 0: it is too long, or there are two */
    char text[SR_REQUEST_ID_MAX];
} sirius_named;

/* %env of a turn. */
typedef struct sirius_env {
    HV *hv;    /* of pooled, or alone; NULL: it is over */
    HV *alone; /* for a request that fits no shape. Counted: an exit frees temporaries before it answers */
    struct envpool_env *pooled; /* the entry of the pool that hv is from; NULL: none */
    bool untouched;   /* the application has left hv as the pool has made it; known once it has returned */
    bool giving_back; /* pooled is about to return to the pool; seen a second time, it is not used any more */
} sirius_env;

void sirius_env_boot(pTHX);

/* Inside: makes the environment of the turn. Returns a reference to it, which is mortal or the pool's. */
SV *sirius_env_make(pTHX_ sirius *s, const sr_worker_request *r);
void sirius_env_forwarded(pTHX_ HV *env, const sr_worker_request *r); /* for one whose slot is `forwarded` */

/* A value; NULL also if the application has tied or locked the hash, so that a look would run code or die. */
SV **sirius_env_fetch(pTHX_ HV *env, const char *key);
HE *sirius_env_fetch_ent(pTHX_ HV *env, SV *key); /* the same for a shared key */

/* True: there is certainly no cleanup handler and no harakiri in it. */
bool sirius_env_nothing_left(pTHX_ HV *env);

#endif
