#ifndef SIRIUS_WORK_H
#define SIRIUS_WORK_H
/* work: the loop of a worker. */
#include "serve.h"
#include "worker/worker.h"

/* Serves until something is to be done. Returns what, a static text; see Sirius::Worker. */
const char *sirius_work(pTHX_ sirius *s, SV *app);
sr_worker_what sirius_work_one(pTHX_ sirius *s,
                               const sirius_app *app); /* serves the next request, if there is one */

/* The application has called exit: answers 500. */
void sirius_abandon(pTHX_ sirius *s, const char *why);

void sirius_work_watch(
    sirius *s, int edge); /* return "edge" when that pidfd is readable, "trouble" when it has counted some */
void sirius_work_open(pTHX_ sirius *s, int sleepers, uint32_t row, uint32_t generation); /* croaks */
void sirius_work_close(pTHX_ sirius *s);

#endif
