#ifndef SIRIUS_WORK_H
#define SIRIUS_WORK_H
/* work: the loop of a worker, and memory that the supervisor shares. */
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

/* Shared memory for the edges, or for all. The descriptor is the caller's. Croak. */
int sirius_common_new(pTHX);
int sirius_sleepers_new(pTHX_ uint32_t rows);

/* An edge has ended without a word: clears what it has written there. Croak. */
void sirius_common_clear(pTHX_ int fd, uint32_t edge);
void sirius_sleepers_part(pTHX_ int fd, uint32_t edge);

/* No request will ever come: all workers end. Croaks. */
void sirius_sleepers_over(pTHX_ int fd);

/* Workers of this generation, and of those before, begin no request any more. Croaks. */
void sirius_sleepers_hold(pTHX_ int fd, uint32_t generation);

#endif
