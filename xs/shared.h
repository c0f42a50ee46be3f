#ifndef SIRIUS_SHARED_H
#define SIRIUS_SHARED_H
/*
 * shared: memory that the supervisor makes for edges and workers, by its descriptor. share/sleepers.h and
 * share/common.h say what is in it. All functions croak.
 */
#include "perlapi.h"

#include "share/sleepers.h"

/* For the edges, or for all. The descriptor is the caller's. */
int sirius_common_new(pTHX);
int sirius_sleepers_new(pTHX_ uint32_t rows);

/* An edge has ended without a word: clears what it has written there. */
void sirius_common_clear(pTHX_ int fd, uint32_t edge);
void sirius_sleepers_part(pTHX_ int fd, uint32_t edge);

/* No request will ever come: all workers end. */
void sirius_sleepers_over(pTHX_ int fd);

/* Workers of this generation, and of those before, begin no request any more. */
void sirius_sleepers_hold(pTHX_ int fd, uint32_t generation);

/* Maps the sleepers, SR_SLEEPERS_BYTES of them, which the caller unmaps. */
sr_sleepers *sirius_sleepers_map(pTHX_ int fd);

#endif
