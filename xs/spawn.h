#ifndef SIRIUS_SPAWN_H
#define SIRIUS_SPAWN_H
/* spawn: starts a program. */
#include "sirius.h"

/*
 * Starts a program in a child, with these words, the first of which is its name. It has no handlers, no
 * signal is blocked, and these descriptors are open besides those that all programs get. Returns its PID;
 * croaks with the reason.
 */
int sirius_spawn(pTHX_ const char *path, AV *words, AV *descriptors);

/* The same, but the process is no child of this one (net/beside.h), and *pidfd tells its end. */
int sirius_spawn_beside(pTHX_ const char *path, AV *words, AV *descriptors, int *pidfd);

#endif
